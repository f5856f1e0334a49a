/* nvrtc.cpp - stand-in for NVRTC: the source must pass NVRTC itself, where that can be opened; what runs is
 * made of it by clang++, as a shared object. */
#include <dlfcn.h>
#include <string>
#include <unistd.h>
#include <vector>
#include "cuemu/shim/nvrtc.h"
#include "jit.h"

struct _nvrtcProgram {
    std::string source, name, log, image;
};

/* ---- what the language has beside C++ -------------------------------------------------------- */

static const char language[] = R"(
struct uint3 { unsigned x, y, z; };
struct Exec { uint3 tidx, bidx, bdim, gdim; };
static const Exec *cuemu_thread;
#define threadIdx (cuemu_thread->tidx)
#define blockIdx (cuemu_thread->bidx)
#define blockDim (cuemu_thread->bdim)
#define gridDim (cuemu_thread->gdim)
#define __device__
#define __global__ __attribute__((visibility("default")))
static inline float __uint_as_float(unsigned u) { return __builtin_bit_cast(float, u); }
static inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
#define ONE(name) static inline double name(double x) { return __builtin_##name(x); } \
    static inline float name(float x) { return __builtin_##name##f(x); }
ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(sin) ONE(cos) ONE(tan) ONE(asin)
ONE(acos) ONE(atan) ONE(sinh) ONE(cosh) ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh) ONE(lgamma) ONE(tgamma)
ONE(erf) ONE(erfc) ONE(sqrt) ONE(cbrt) ONE(fabs) ONE(floor) ONE(ceil) ONE(rint) ONE(round) ONE(trunc)
#define TWO(name) static inline double name(double a, double b) { return __builtin_##name(a, b); } \
    static inline float name(float a, float b) { return __builtin_##name##f(a, b); }
TWO(pow) TWO(atan2) TWO(hypot) TWO(fmod) TWO(copysign) TWO(fmin) TWO(fmax) TWO(remainder)
TWO(fdim)
#define ASK(name) static inline bool name(double x) { return __builtin_##name(x); } \
    static inline bool name(float x) { return __builtin_##name(x); }
ASK(isnan) ASK(isinf) ASK(isfinite) ASK(signbit)
)";

/* For each kernel of one argument how many bytes that has, and how a thread calls it. */
static std::string entries(const std::string &source)
{
    static const char start[] = "__global__ void ";
    std::string all =
        "\ntemplate <class A> static unsigned long cuemu_size(void (*)(A)) { return sizeof(A); }\n"
        "template <class A> static void cuemu_call(void (*f)(A), const void *a)"
        " { f(*(const A *)a); }\n#define OPEN __attribute__((visibility(\"default\")))\n";
    for (size_t at = 0; (at = source.find(start, at)) != std::string::npos;) {
        at += sizeof start - 1;
        const std::string name = source.substr(at, source.find('(', at) - at);
        all += "extern \"C\" { OPEN extern const unsigned long " CUEMU_BYTES + name +
               ";\nconst unsigned long " CUEMU_BYTES + name + " = cuemu_size(" + name +
               ");\nOPEN void " CUEMU_CALL + name +
               "(const Exec *t, const void *a) { cuemu_thread = t, cuemu_call(" + name + ", a); } }\n";
    }
    return all;
}

/* ---- compiling ------------------------------------------------------------------------------- */

static std::string contents(const std::string &path)
{
    std::string text;
    char part[4096];
    FILE *file = fopen(path.c_str(), "rb");
    for (size_t n; file && (n = fread(part, 1, sizeof part, file)) > 0;) text.append(part, n);
    if (file) fclose(file);
    return text;
}

static bool compile_here(_nvrtcProgram *p, int count, const char *const *options)
{
    char folder[] = "/tmp/cuemu_XXXXXX";
    if (!mkdtemp(folder)) return false;
    const std::string in = folder + std::string("/in.cpp"), out = folder + std::string("/out.so"),
                      said = folder + std::string("/log");
    FILE *file = fopen(in.c_str(), "w");
    std::string command = CUEMU_CXX " -std=c++20 -O1 -march=native -shared -fPIC"
                                    " -fvisibility=hidden -ffp-contract=off -w";
    for (int i = 0; i < count; i++)
        if (strncmp(options[i], "-D", 2) == 0) command += std::string(" '") + options[i] + "'";
    command += " -o " + out + " " + in + " 2> " + said;
    const bool written = file && fputs((language + p->source + entries(p->source)).c_str(), file) >= 0;
    if (file) fclose(file);
    const bool made = written && system(command.c_str()) == 0;
    const std::string code = contents(out);
    if (!made) p->log += contents(said);
    const cuemuImage head = { "cuemu", code.size() };
    p->image = std::string((const char *)&head, sizeof head) + code;
    unlink(in.c_str()), unlink(out.c_str()), unlink(said.c_str()), rmdir(folder);
    return made;
}

/* By NVRTC itself; true where it is not here.  To PTX, but for every eighth: what the assembler adds takes
 * half of the time and seldom has something to say. */
static bool passes_nvrtc(_nvrtcProgram *p, int count, const char *const *options)
{
    static void *const library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!library) return true;
#define REAL(f) ((decltype(&f))dlsym(library, #f))
    nvrtcProgram real;
    size_t size = 0;
    if (REAL(nvrtcCreateProgram)(&real, p->source.c_str(), p->name.c_str(), 0, nullptr, nullptr))
        return false;
    static unsigned programs;
    const bool assembled = programs++ % 8 == 0;
    std::vector<const char *> passed(options, options + count);
    std::string arch;
    for (const char *&option : passed)
        if (const char *chip = strstr(option, "=sm_"); chip && !assembled)
            option = (arch = std::string(option, (size_t)(chip - option)) + "=compute_" + (chip + 4)).c_str();
    const bool passes = REAL(nvrtcCompileProgram)(real, count, passed.data()) == NVRTC_SUCCESS;
    if (!REAL(nvrtcGetProgramLogSize)(real, &size) && size > 1) {
        p->log.resize(size);
        REAL(nvrtcGetProgramLog)(real, &p->log[0]);
        p->log.pop_back(); /* its 0 */
    }
    REAL(nvrtcDestroyProgram)(&real);
    return passes;
}

static nvrtcResult copy_out(const std::string &from, char *to)
{
    memcpy(to, from.data(), from.size());
    return NVRTC_SUCCESS;
}

extern "C" {
const char *nvrtcGetErrorString(nvrtcResult status)
{
    return status == NVRTC_SUCCESS             ? "NVRTC_SUCCESS"
           : status == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION"
                                               : "NVRTC_ERROR_INVALID_OPTION";
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
    *count = 2;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *archs)
{
    archs[0] = 75, archs[1] = 90;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int,
                               const char *const *, const char *const *)
{
    *program = new _nvrtcProgram{ source, name, "", "" };
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    delete *program;
    *program = nullptr;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int count, const char *const *options)
{
    return passes_nvrtc(p, count, options) && compile_here(p, count, options) ? NVRTC_SUCCESS
                                                                              : NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *size)
{
    *size = p->log.size() + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *log)
{
    log[p->log.size()] = 0;
    return copy_out(p->log, log);
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *size)
{
    *size = p->image.size();
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *code) { return copy_out(p->image, code); }

nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *size) { return nvrtcGetCUBINSize(p, size); }

nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *code) { return nvrtcGetCUBIN(p, code); }
}
