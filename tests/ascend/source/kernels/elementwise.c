/* Operators on each element. x, y and z are the first three arguments: tensors that are broadcast to the output, or
   numbers. An optional number that is missing is NaN. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

/* Large tensors are computed in blocks: their numbers as doubles would not fit into the memory. */
enum { BLOCK = 1 << 18 };
typedef struct { bool is_tensor; Walk walk; double *numbers; } Operand;

static Operand operand(Task *task, int place, const Tensor *out, int64_t block) {
  Operand made = {.numbers = scratch(task, block * sizeof *made.numbers)};
  char letter = place < task->count ? task->signature[place] : '-';
  bool is_output = place == task->result && strncmp(task->name, "aclnnInplace", 12);
  if (letter == 't' && tensor(task, place) && !is_output) {
    Tensor view = view_as(tensor(task, place), out);
    made.walk = walk(&view);
    made.is_tensor = view.address; /* without an address its numbers are zeros */
    return made;
  }
  double value = NAN;
  if (letter == 's') value = scalar(task, place, NAN);
  if (letter == 'd' || letter == 'f') value = number(task, place);
  if (letter == 'l' || letter == 'b' || letter == 'i') value = integer(task, place);
  for (int64_t k = 0; k < block; k++) made.numbers[k] = value;
  return made;
}

static const double *next(Operand *operand, int64_t count) {
  if (operand->is_tensor) read_numbers(&operand->walk, operand->numbers, count);
  return operand->numbers;
}

#define EACH(name, expression)                                                                        \
  static int name(Task *task) {                                                                       \
    Tensor *out = result(task);                                                                       \
    int64_t count = elements(out), block = count < BLOCK ? count : BLOCK;                             \
    Operand first = operand(task, 0, out, block), second_one = operand(task, 1, out, block);          \
    Operand third = operand(task, 2, out, block);                                                     \
    double *found = scratch(task, block * sizeof *found);                                             \
    Walk target = walk(out);                                                                          \
    for (int64_t done = 0, size; done < count; done += size) {                                        \
      size = count - done < block ? count - done : block;                                             \
      const double *xs = next(&first, size), *ys = next(&second_one, size), *zs = next(&third, size); \
      for (int64_t k = 0; k < size; k++) {                                                            \
        double x = xs[k], y = ys[k], z = zs[k];                                                       \
        (void)x, (void)y, (void)z;                                                                    \
        found[k] = expression;                                                                        \
      }                                                                                               \
      if (out->address) write_numbers(&target, found, size);                                          \
    }                                                                                                 \
    return SUCCESS;                                                                                   \
  }

static double larger(double x, double y) { return isnan(x) || isnan(y) ? NAN : x > y ? x : y; }
static double smaller(double x, double y) { return isnan(x) || isnan(y) ? NAN : x < y ? x : y; }
static double logistic(double x) { return 1 / (1 + exp(-x)); }
static double gaussian(double x) { return exp(-x * x / 2) * 0.3989422804014327; } /* 1 / sqrt(2 pi) */
static double below(double x) { return 0.5 * (1 + erf(x * M_SQRT1_2)); }
static double inner(double x) { return tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)); } /* sqrt(2 / pi) */
static double gelu_slope(double x) { return below(x) + x * gaussian(x); }
static double gelu_tanh_slope(double x) {
  double t = inner(x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

EACH(plus, x + y)
EACH(minus, x - y)
EACH(add, x + z * y)
EACH(subtract, x - z * y)
EACH(multiply, x * y)
EACH(divide, x / y)
EACH(floor_divide, floor(x / y))
EACH(remainder_of, x - floor(x / y) * y)
EACH(truncated_remainder, fmod(x, y))
EACH(power, pow(x, y))
EACH(maximum, larger(x, y))
EACH(minimum, smaller(x, y))
EACH(arc_tangent_2, atan2(x, y))
EACH(equal, x == y)
EACH(not_equal, x != y)
EACH(less, x < y)
EACH(less_equal, x <= y)
EACH(greater, x > y)
EACH(greater_equal, x >= y)
EACH(logical_and, x && y)
EACH(logical_or, x || y)
EACH(logical_xor, !x != !y)
EACH(logical_not, !x)
EACH(bit_and, (int64_t)x & (int64_t)y)
EACH(bit_or, (int64_t)x | (int64_t)y)
EACH(bit_xor, (int64_t)x ^ (int64_t)y)
EACH(second, y)
EACH(zero, 0)
EACH(one, 1)
EACH(relu, x > 0 || isnan(x) ? x : 0)
EACH(negative, -x)
EACH(absolute, fabs(x))
EACH(exponential, exp(x))
EACH(exponential_minus_one, expm1(x))
EACH(power_of_two, exp2(x))
EACH(logarithm, log(x))
EACH(logarithm_of_one_plus, log1p(x))
EACH(logarithm_2, log2(x))
EACH(logarithm_10, log10(x))
EACH(square, x * x)
EACH(square_root, sqrt(x))
EACH(inverse_square_root, 1 / sqrt(x))
EACH(inverse, 1 / x)
EACH(sine, sin(x))
EACH(cosine, cos(x))
EACH(tangent, tan(x))
EACH(arc_sine, asin(x))
EACH(arc_cosine, acos(x))
EACH(arc_tangent, atan(x))
EACH(hyperbolic_sine, sinh(x))
EACH(hyperbolic_cosine, cosh(x))
EACH(hyperbolic_tangent, tanh(x))
EACH(area_sine, asinh(x))
EACH(area_cosine, acosh(x))
EACH(area_tangent, atanh(x))
EACH(error_function, erf(x))
EACH(error_function_rest, erfc(x))
EACH(round_down, floor(x))
EACH(round_up, ceil(x))
EACH(round_even, nearbyint(x))
EACH(truncate_it, trunc(x))
EACH(sign_of, isnan(x) ? NAN : (x > 0) - (x < 0))
EACH(is_finite, isfinite(x) != 0)
EACH(is_infinite, isinf(x) != 0)
EACH(is_nan, isnan(x) != 0)
EACH(sigmoid, logistic(x))
EACH(silu, x * logistic(x))
EACH(mish, x * tanh(log1p(exp(x))))
EACH(softplus, log1p(exp(-fabs(x * y))) / y + larger(x, 0))
EACH(log_sigmoid, smaller(x, 0) - log1p(exp(-fabs(x))))
EACH(hard_sigmoid, smaller(larger(x / 6 + 0.5, 0), 1))
EACH(hard_swish, x * smaller(larger(x + 3, 0), 6) / 6)
EACH(leaky_relu, x > 0 ? x : y * x)
EACH(elu, x > 0 ? x * z : y * z * expm1(x))
EACH(gelu, x * below(x))
EACH(gelu_by_kind, y ? 0.5 * x * (1 + inner(x)) : x * below(x))
EACH(clamp, !isnan(z) && x > z ? z : !isnan(y) && x < y ? y : x)
EACH(clamp_minimum, x < y ? y : x)
EACH(where, x ? y : z)
EACH(masked_fill, y ? z : x)
EACH(lerp, x + z * (y - x))
EACH(nan_to_number, isnan(x) ? y : x)

/* backward: x is the gradient, y the input or the output of the forward */
EACH(relu_gradient, y > z ? x : 0)
EACH(sigmoid_gradient, x * y * (1 - y))
EACH(tanh_gradient, x * (1 - y * y))
EACH(silu_gradient, x * logistic(y) * (1 + y * (1 - logistic(y))))
EACH(gelu_gradient, x * gelu_slope(y))
EACH(leaky_relu_gradient, y > 0 ? x : x * z)
EACH(log_sigmoid_gradient, x * (1 - logistic(y)))
EACH(hard_swish_gradient, x * (y < -3 ? 0 : y <= 3 ? y / 3 + 0.5 : 1))
EACH(hard_sigmoid_gradient, fabs(y) < 3 ? x / 6 : 0)
EACH(softplus_gradient, x * logistic(y * z))

/* the older operators give the output of the forward first, then its gradient */
EACH(sqrt_gradient_of_output, y * 0.5 / x)
EACH(tanh_gradient_of_output, y * (1 - x * x))
EACH(sigmoid_gradient_of_output, y * x * (1 - x))
EACH(relu_gradient_of_output, y > 0 ? x : 0)
EACH(inverse_gradient_of_output, -y * x * x)

static int gelu_gradient_by_kind(Task *task) {
  Tensor *out = result(task);
  double *slope = numbers_as(task, tensor(task, 1), out), *given = numbers_as(task, tensor(task, 0), out);
  const char *kind = task->argument[2].text;
  for (int64_t k = 0; k < elements(out); k++)
    slope[k] = given[k] * (kind && !strcmp(kind, "tanh") ? gelu_tanh_slope(slope[k]) : gelu_slope(slope[k]));
  put(out, slope);
  return SUCCESS;
}

/* x + z * y1 * y2 and x + z * y1 / y2: self, tensor1, tensor2, value (a tensor of an aclop), out */
static int add_product(Task *task) {
  Tensor *out = result(task);
  double *sum = numbers_as(task, tensor(task, 0), out);
  double factor = task->signature[3] == 't' ? first_number(tensor(task, 3)) : scalar(task, 3, 1);
  double *left = numbers_as(task, tensor(task, 1), out), *right = numbers_as(task, tensor(task, 2), out);
  bool divides = strstr(task->name, "cdiv");
  for (int64_t k = 0; k < elements(out); k++) sum[k] += factor * (divides ? left[k] / right[k] : left[k] * right[k]);
  put(out, sum);
  return SUCCESS;
}

/* The first input is the variable; the output is the same variable. */
static int assign(Task *task) {
  Tensor view = view_as(tensor(task, 1), tensor(task, 0));
  move(tensor(task, 0), &view);
  move(output(task, 0), &view);
  return SUCCESS;
}

/* Casts and copies keep bits where the dtype stays. */
static int copy_into(Task *task) {
  Tensor view = view_as(tensor(task, 1), tensor(task, 0));
  move(tensor(task, 0), &view);
  return SUCCESS;
}
static int cast(Task *task) {
  move(result(task), tensor(task, 0));
  return SUCCESS;
}

EACH(arc_cosine_gradient, -y / sqrt(1 - x * x))

/* One tensor after the other, rounded to float32 each time, as CANN's does: MindSpore joins sums of gradients. */
static int add_all(Task *task) {
  Tensor *out = result(task);
  bool is_single = out->dtype == FLOAT32 || out->dtype == FLOAT16 || out->dtype == BFLOAT16;
  double *total = scratch(task, elements(out) * sizeof *total);
  for (int k = 0; k < task->inputs; k++) {
    double *given = numbers_as(task, tensor(task, k), out);
    for (int64_t at = 0; at < elements(out); at++) {
      total[at] += given[at];
      if (is_single) total[at] = (float)total[at];
    }
  }
  put(out, total);
  return SUCCESS;
}
static int fill_with(Task *task) { /* shape, value */
  Tensor view = view_as(tensor(task, 1), result(task));
  move(result(task), &view);
  return SUCCESS;
}

static int log_sigmoid_with_buffer(Task *task) { /* in, out, a buffer for the backward */
  Task plain = *task;
  plain.count = 1;
  int error = log_sigmoid(&plain);
  plain.result = 2;
  error = error ? error : log_sigmoid(&plain);
  task->scratch = plain.scratch;
  return error;
}

const Operator elementwise_operators[] = {
    {"aclnnAdd", "ttst", add, LAST}, {"aclnnAdds", "tsst", add, LAST},
    {"aclnnAddV3", "stst", add, LAST},
    {"aclnnInplaceAdd", "tts", add, 0}, {"aclnnInplaceAdds", "tss", add, 0},
    {"aclnnSub", "ttst", subtract, LAST}, {"aclnnSubs", "tsst", subtract, LAST},
    {"aclnnInplaceSub", "tts", subtract, 0}, {"aclnnInplaceSubs", "tss", subtract, 0},
    {"aclnnMul", "ttt", multiply, LAST}, {"aclnnMuls", "tst", multiply, LAST},
    {"aclnnInplaceMul", "tt", multiply, 0}, {"aclnnInplaceMuls", "ts", multiply, 0},
    {"aclnnDiv", "ttt", divide, LAST}, {"aclnnDivs", "tst", divide, LAST},
    {"aclnnInplaceDiv", "tt", divide, 0}, {"aclnnInplaceDivs", "ts", divide, 0},
    {"aclnnFloorDivide", "ttt", floor_divide, LAST}, {"aclnnFloorDivides", "tst", floor_divide, LAST},
    {"aclnnInplaceFloorDivide", "tt", floor_divide, 0}, {"aclnnInplaceFloorDivides", "ts", floor_divide, 0},
    {"aclnnRemainderTensorTensor", "ttt", remainder_of, LAST},
    {"aclnnRemainderTensorScalar", "tst", remainder_of, LAST},
    {"aclnnRemainderScalarTensor", "stt", remainder_of, LAST},
    {"aclnnFmodTensor", "ttt", truncated_remainder, LAST}, {"aclnnFmodScalar", "tst", truncated_remainder, LAST},
    {"aclnnPowTensorTensor", "ttt", power, LAST}, {"aclnnPowTensorScalar", "tst", power, LAST},
    {"aclnnPowScalarTensor", "stt", power, LAST},
    {"aclnnMaximum", "ttt", maximum, LAST}, {"aclnnMinimum", "ttt", minimum, LAST},
    {"aclnnAtan2", "ttt", arc_tangent_2, LAST},
    {"aclnnEqTensor", "ttt", equal, LAST}, {"aclnnEqScalar", "tst", equal, LAST},
    {"aclnnNeTensor", "ttt", not_equal, LAST}, {"aclnnNeScalar", "tst", not_equal, LAST},
    {"aclnnLtTensor", "ttt", less, LAST}, {"aclnnLtScalar", "tst", less, LAST},
    {"aclnnLeTensor", "ttt", less_equal, LAST}, {"aclnnLeScalar", "tst", less_equal, LAST},
    {"aclnnGtTensor", "ttt", greater, LAST}, {"aclnnGtScalar", "tst", greater, LAST},
    {"aclnnGeTensor", "ttt", greater_equal, LAST}, {"aclnnGeScalar", "tst", greater_equal, LAST},
    {"aclnnLogicalAnd", "ttt", logical_and, LAST}, {"aclnnLogicalOr", "ttt", logical_or, LAST},
    {"aclnnLogicalXor", "ttt", logical_xor, LAST}, {"aclnnLogicalNot", "tt", logical_not, LAST},
    {"aclnnBitwiseAndTensor", "ttt", bit_and, LAST}, {"aclnnBitwiseAndScalar", "tst", bit_and, LAST},
    {"aclnnBitwiseOrTensor", "ttt", bit_or, LAST}, {"aclnnBitwiseOrScalar", "tst", bit_or, LAST},
    {"aclnnBitwiseXorTensor", "ttt", bit_xor, LAST}, {"aclnnBitwiseXorScalar", "tst", bit_xor, LAST},
    {"aclnnRelu", "tt", relu, LAST}, {"aclnnInplaceRelu", "t", relu, 0},
    {"aclnnNeg", "tt", negative, LAST}, {"aclnnAbs", "tt", absolute, LAST},
    {"aclnnExp", "tt", exponential, LAST}, {"aclnnInplaceExp", "t", exponential, 0},
    {"aclnnExpm1", "tt", exponential_minus_one, LAST}, {"aclnnExp2", "tt", power_of_two, LAST},
    {"aclnnLog", "tt", logarithm, LAST}, {"aclnnInplaceLog", "t", logarithm, 0},
    {"aclnnLog1p", "tt", logarithm_of_one_plus, LAST}, {"aclnnLog2", "tt", logarithm_2, LAST},
    {"aclnnLog10", "tt", logarithm_10, LAST}, {"aclnnSquare", "tt", square, LAST},
    {"aclnnSqrt", "tt", square_root, LAST}, {"aclnnRsqrt", "tt", inverse_square_root, LAST},
    {"aclnnReciprocal", "tt", inverse, LAST},
    {"aclnnSin", "tt", sine, LAST}, {"aclnnCos", "tt", cosine, LAST}, {"aclnnTan", "tt", tangent, LAST},
    {"aclnnAsin", "tt", arc_sine, LAST}, {"aclnnAcos", "tt", arc_cosine, LAST}, {"aclnnAtan", "tt", arc_tangent, LAST},
    {"aclnnSinh", "tt", hyperbolic_sine, LAST}, {"aclnnCosh", "tt", hyperbolic_cosine, LAST},
    {"aclnnTanh", "tt", hyperbolic_tangent, LAST}, {"aclnnInplaceTanh", "t", hyperbolic_tangent, 0},
    {"aclnnAsinh", "tt", area_sine, LAST}, {"aclnnAcosh", "tt", area_cosine, LAST},
    {"aclnnAtanh", "tt", area_tangent, LAST},
    {"aclnnErf", "tt", error_function, LAST}, {"aclnnErfc", "tt", error_function_rest, LAST},
    {"aclnnFloor", "tt", round_down, LAST}, {"aclnnInplaceFloor", "t", round_down, 0},
    {"aclnnCeil", "tt", round_up, LAST}, {"aclnnRound", "tt", round_even, LAST}, {"aclnnTrunc", "tt", truncate_it, LAST},
    {"aclnnSign", "tt", sign_of, LAST}, {"aclnnIsFinite", "tt", is_finite, LAST}, {"aclnnIsInf", "tt", is_infinite, LAST},
    {"aclnnSigmoid", "tt", sigmoid, LAST}, {"aclnnInplaceSigmoid", "t", sigmoid, 0},
    {"aclnnSilu", "tt", silu, LAST}, {"aclnnMish", "tt", mish, LAST}, {"aclnnLogSigmoid", "tt", log_sigmoid, LAST},
    {"aclnnSoftplus", "tsst", softplus, LAST}, {"aclnnHardsigmoid", "tt", hard_sigmoid, LAST},
    {"aclnnHardswish", "tt", hard_swish, LAST}, {"aclnnLeakyRelu", "tst", leaky_relu, LAST},
    {"aclnnElu", "tssst", elu, LAST}, {"aclnnGelu", "tt", gelu, LAST}, {"aclnnGeluV2", "tlt", gelu_by_kind, LAST},
    {"aclnnClamp", "tsst", clamp, LAST}, {"aclnnClampTensor", "tttt", clamp, LAST},
    {"aclnnInplaceClamp", "tss", clamp, 0}, {"aclnnClampMin", "tst", clamp_minimum, LAST},
    {"aclnnSWhere", "tttt", where, LAST}, {"aclnnLerp", "tttt", lerp, LAST}, {"aclnnLerps", "ttst", lerp, LAST},
    {"aclnnNanToNum", "tffft", nan_to_number, LAST},
    {"aclnnInplaceMaskedFillScalar", "tts", masked_fill, 0}, {"aclnnInplaceMaskedFillTensor", "ttt", masked_fill, 0},
    {"aclnnInplaceZero", "t", zero, 0}, {"aclnnInplaceOne", "t", one, 0},
    {"aclnnInplaceFillScalar", "ts", second, 0}, {"aclnnInplaceFillTensor", "tt", second, 0},
    {"aclnnInplaceCopy", "tt", copy_into, 0}, {"aclnnCast", "tit", cast, LAST},
    {"aclnnAddcmul", "tttst", add_product, LAST}, {"aclnnAddcdiv", "tttst", add_product, LAST},
    {"aclnnThresholdBackward", "ttst", relu_gradient, LAST}, {"aclnnSigmoidBackward", "ttt", sigmoid_gradient, LAST},
    {"aclnnLogSigmoidForward", "ttt", log_sigmoid_with_buffer, 1},
    {"aclnnLogSigmoidBackward", "tttt", log_sigmoid_gradient, LAST}, {"aclnnTanhBackward", "ttt", tanh_gradient, LAST}, {"aclnnSiluBackward", "ttt", silu_gradient, LAST},
    {"aclnnGeluBackward", "ttt", gelu_gradient, LAST}, {"aclnnGeluBackwardV2", "ttpt", gelu_gradient_by_kind, LAST},
    {"aclnnLeakyReluBackward", "ttsbt", leaky_relu_gradient, LAST},
    {"aclnnHardswishBackward", "ttt", hard_swish_gradient, LAST},
    {"aclnnHardsigmoidBackward", "ttt", hard_sigmoid_gradient, LAST},
    {"aclnnSoftplusBackward", "ttsst", softplus_gradient, LAST},
    END,
};

const Operator elementwise_aclops[] = {
    {"AddV2", "", plus, 0}, {"Add", "", plus, 0}, {"AssignAdd", "", plus, 0}, {"Sub", "", minus, 0},
    {"AssignSub", "", minus, 0}, {"Mul", "", multiply, 0}, {"RealDiv", "", divide, 0}, {"Div", "", divide, 0},
    {"Pow", "", power, 0}, {"Maximum", "", maximum, 0}, {"Minimum", "", minimum, 0}, {"Equal", "", equal, 0},
    {"NotEqual", "", not_equal, 0}, {"Less", "", less, 0}, {"LessEqual", "", less_equal, 0},
    {"Greater", "", greater, 0}, {"GreaterEqual", "", greater_equal, 0}, {"LogicalAnd", "", logical_and, 0},
    {"LogicalOr", "", logical_or, 0}, {"LogicalNot", "", logical_not, 0}, {"Neg", "", negative, 0},
    {"Sqrt", "", square_root, 0}, {"Rsqrt", "", inverse_square_root, 0}, {"Square", "", square, 0},
    {"Exp", "", exponential, 0}, {"Log", "", logarithm, 0}, {"Abs", "", absolute, 0}, {"Tanh", "", hyperbolic_tangent, 0},
    {"Sigmoid", "", sigmoid, 0}, {"Relu", "", relu, 0}, {"IsFinite", "", is_finite, 0}, {"Floor", "", round_down, 0},
    {"FloorDiv", "", floor_divide, 0}, {"FloorMod", "", remainder_of, 0}, {"Sign", "", sign_of, 0},
    {"OnesLike", "", one, 0}, {"ZerosLike", "", zero, 0}, {"Cast", "", cast, 0}, {"Identity", "", cast, 0},
    {"Reshape", "", cast, 0}, {"Assign", "", assign, 0}, {"SelectV2", "", where, 0}, {"Select", "", where, 0},
    {"Addcmul", "", add_product, 0}, {"Addcdiv", "", add_product, 0}, {"Reciprocal", "", inverse, 0}, {"Inv", "", inverse, 0}, {"IsInf", "", is_infinite, 0},
    {"IsNan", "", is_nan, 0},
    {"SqrtGrad", "", sqrt_gradient_of_output, 0}, {"TanhGrad", "", tanh_gradient_of_output, 0},
    {"SigmoidGrad", "", sigmoid_gradient_of_output, 0}, {"ReluGrad", "", relu_gradient_of_output, 0},
    {"ReciprocalGrad", "", inverse_gradient_of_output, 0}, {"AddN", "", add_all, 0}, {"Fill", "", fill_with, 0},
    {"Acos", "", arc_cosine, 0}, {"AcosGrad", "", arc_cosine_gradient, 0}, {"Asin", "", arc_sine, 0}, {"Atan", "", arc_tangent, 0}, {"Sin", "", sine, 0},
    {"Cos", "", cosine, 0}, {"Erf", "", error_function, 0}, {"Ceil", "", round_up, 0}, {"Log1p", "", logarithm_of_one_plus, 0},
    {"Expm1", "", exponential_minus_one, 0},
    END,
};
