// What the other texts share: vectors of sixteen floats that may begin anywhere, and those that begin at a multiple.
typedef float16 __attribute__((aligned(4))) loose;
#define AT(p) (*(global const loose *)(p))
#define PUT(p, v) (*(global loose *)(p) = (v))
#define BROAD(v) ((float16)(v))
#if STREAM
#define WRITE(p, v) __builtin_nontemporal_store((v), (global float16 *)(p))
#else
#define WRITE(p, v) (*(global float16 *)(p) = (v))
#endif
static inline int held(int i, int least, int most) { return i < least ? least : i > most ? most : i; }
static inline float sum8(float8 v) {
  float4 h = v.lo + v.hi;
  return (h.s0 + h.s1) + (h.s2 + h.s3);
}
static inline float sum16(float16 v) { return sum8(v.lo + v.hi); }
static inline float16 larger(float16 a, float16 b) { return a < b ? b : a; }
