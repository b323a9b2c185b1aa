/* Sums, extrema, norms and counts over axes. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

typedef enum { SUM, MEAN, MAX, MIN, ALL, ANY, NORM, PRODUCT } Kind;

static double start_of(Kind kind) {
  return kind == MAX ? -INFINITY : kind == MIN ? INFINITY : kind == ALL || kind == PRODUCT;
}

static double joined(Kind kind, double total, double value, double power) {
  switch (kind) {
    case MAX: return isnan(value) || isnan(total) ? NAN : value > total ? value : total;
    case MIN: return isnan(value) || isnan(total) ? NAN : value < total ? value : total;
    case ALL: return total && value;
    case ANY: return total || value;
    case PRODUCT: return total * value;
    case NORM:
      if (isinf(power)) return fabs(value) > total || isnan(value) ? fabs(value) : total;
      return total + (power == 0 ? value != 0 : power == 2 ? value * value : pow(fabs(value), power));
    default: return total + value;
  }
}

/* Reduces over axes; none means all of them. Sums of floats end in float32's range, as on the device. */
static int reduce(Task *task, const Tensor *in, const int64_t *axes, int64_t axis_count, const Tensor *out, Kind kind,
                  double power) {
  bool is_reduced[MAX_RANK] = {false};
  for (int64_t k = 0; k < axis_count; k++) is_reduced[axis_of(in, axes[k])] = true;
  int64_t order[MAX_RANK], kept = 0, places = 1;
  for (int axis = 0; axis < in->rank; axis++)
    if (axis_count && !is_reduced[axis]) order[kept++] = axis, places *= in->shape[axis];
  for (int axis = 0, next = kept; axis < in->rank; axis++)
    if (!axis_count || is_reduced[axis]) order[next++] = axis;
  Tensor view = view_permuted(in, order); /* the axes that stay come first */
  int64_t size = places ? elements(&view) / places : 0;
  double *values = numbers(task, &view), *found = scratch(task, places * sizeof *found);
  for (int64_t place = 0; place < places; place++) {
    double total = start_of(kind);
    for (int64_t k = 0; k < size; k++) {
      int64_t at = sums_are_turned() ? size - 1 - k : k;
      total = joined(kind, total, values[place * size + at], power);
      if (sums_are_turned() && (kind == SUM || kind == MEAN)) total = (float)total;
    }
    if (!is_whole(out->dtype) && out->dtype != FLOAT64) total = (float)total;
    if (kind == MEAN) total /= size;
    if (kind == NORM && !isinf(power) && power != 0) total = pow(total, 1 / power);
    found[place] = total;
  }
  put(out, found);
  return SUCCESS;
}

static int by_axes(Task *task, int axes, Kind kind, double power) {
  IntArray *given = axes ? integers(task, axes) : NULL;
  return reduce(task, tensor(task, 0), given ? given->item : NULL, given ? given->count : 0, result(task), kind, power);
}
static int by_one_axis(Task *task, Kind kind) {
  int64_t axis = integer(task, 1);
  return reduce(task, tensor(task, 0), &axis, 1, result(task), kind, 0);
}

static int sum(Task *task) { return by_axes(task, 1, SUM, 0); }
static int mean(Task *task) { return by_axes(task, 1, MEAN, 0); }
static int highest(Task *task) { return by_axes(task, 1, MAX, 0); }
static int lowest(Task *task) { return by_axes(task, 1, MIN, 0); }
static int highest_of_all(Task *task) { return by_axes(task, 0, MAX, 0); }
static int lowest_of_all(Task *task) { return by_axes(task, 0, MIN, 0); }
static int all_true(Task *task) { return by_axes(task, 1, ALL, 0); }
static int any_true(Task *task) { return by_axes(task, 1, ANY, 0); }
static int norm(Task *task) { return by_axes(task, 2, NORM, scalar(task, 1, 2)); }
static int product(Task *task) { return by_axes(task, 0, PRODUCT, 0); }
static int product_of_axis(Task *task) { return by_one_axis(task, PRODUCT); }

/* The axes of an aclop are its second input, or an attribute. */
static int old(Task *task, Kind kind) {
  int64_t axes[MAX_RANK], count = 0;
  const Attribute *given = attribute(task, "axes");
  if (task->inputs > 1) {
    double *read = numbers(task, tensor(task, 1));
    for (count = 0; count < elements(tensor(task, 1)); count++) axes[count] = read[count];
  } else if (given) {
    for (count = 0; count < given->count; count++) axes[count] = given->item[count];
  }
  return reduce(task, tensor(task, 0), axes, count, output(task, 0), kind, 0);
}
static int old_sum(Task *task) { return old(task, SUM); }
static int old_mean(Task *task) { return old(task, MEAN); }
static int old_max(Task *task) { return old(task, MAX); }
static int old_min(Task *task) { return old(task, MIN); }
static int old_all(Task *task) { return old(task, ALL); }
static int old_any(Task *task) { return old(task, ANY); }

/* The place of an extremum along an axis; the first one, or the first NaN. */
static int find_extremum(Task *task, int64_t axis, const Tensor *values, const Tensor *places, int sign) {
  const Tensor *in = tensor(task, 0);
  Split split = split_at(in, axis);
  double *given = numbers(task, in);
  double *value = scratch(task, split.outer * split.inner * 8), *where = scratch(task, split.outer * split.inner * 8);
  for (int64_t outer = 0; outer < split.outer; outer++)
    for (int64_t inner = 0; inner < split.inner; inner++) {
      double *row = given + outer * split.size * split.inner + inner;
      int64_t best = 0, at = outer * split.inner + inner;
      for (int64_t k = 1; k < split.size; k++) {
        double now = row[k * split.inner], before = row[best * split.inner];
        if (isnan(now) ? !isnan(before) : sign * now > sign * before) best = k;
      }
      value[at] = row[best * split.inner];
      where[at] = best;
    }
  put(values, value);
  put(places, where);
  return SUCCESS;
}
static int place_of_highest(Task *task) { return find_extremum(task, integer(task, 1), NULL, tensor(task, 3), 1); }
static int place_of_lowest(Task *task) { return find_extremum(task, integer(task, 1), NULL, tensor(task, 3), -1); }
static int highest_and_place(Task *task) {
  return find_extremum(task, integer(task, 1), tensor(task, 3), tensor(task, 4), 1);
}
static int lowest_and_place(Task *task) {
  return find_extremum(task, integer(task, 1), tensor(task, 3), tensor(task, 4), -1);
}

static int old_place_of_highest(Task *task) {
  return find_extremum(task, first_number(tensor(task, 1)), NULL, output(task, 0), 1);
}

static int cumulative_sum(Task *task) {
  Split split = split_at(tensor(task, 0), integer(task, 1));
  double *values = numbers(task, tensor(task, 0));
  for (int64_t outer = 0; outer < split.outer; outer++)
    for (int64_t k = 1; k < split.size; k++)
      for (int64_t inner = 0; inner < split.inner; inner++) {
        int64_t at = (outer * split.size + k) * split.inner + inner;
        values[at] += values[at - split.inner];
      }
  put(result(task), values);
  return SUCCESS;
}

/* Sets a flag to 1 where a tensor of the list has NaN or Inf. */
static int find_bad(Task *task) {
  double bad = 0;
  for (uint64_t item = 0; item < list(task, 0)->count; item++) {
    Tensor *one = list(task, 0)->item[item];
    double *values = numbers(task, one);
    for (int64_t k = 0; k < elements(one); k++)
      if (!isfinite(values[k])) bad = 1;
  }
  put(tensor(task, 1), &bad);
  return SUCCESS;
}

/* self, order, dim, correction, keepdim, out[, mean] */
static int variance(Task *task, int axes, int correction, int variance_at, int mean_at, bool is_root) {
  const Tensor *in = tensor(task, 0);
  IntArray *given = integers(task, axes);
  reduce(task, in, given ? given->item : NULL, given ? given->count : 0, tensor(task, variance_at), MEAN, 0);
  Tensor means = *tensor(task, variance_at);
  int64_t places = elements(&means), size = places ? elements(in) / places : 0;
  bool is_reduced[MAX_RANK] = {false};
  int64_t order[MAX_RANK], kept = 0;
  for (uint64_t k = 0; given && k < given->count; k++) is_reduced[axis_of(in, given->item[k])] = true;
  bool all = !given || !given->count;
  for (int axis = 0; axis < in->rank; axis++) if (!all && !is_reduced[axis]) order[kept++] = axis;
  for (int axis = 0; axis < in->rank; axis++) if (all || is_reduced[axis]) order[kept++] = axis;
  Tensor view = view_permuted(in, order);
  double *values = numbers(task, &view), *found = scratch(task, places * 8), *middle = scratch(task, places * 8);
  for (int64_t place = 0; place < places; place++) {
    double total = 0, mean_here = 0;
    for (int64_t k = 0; k < size; k++) mean_here += values[place * size + k] / size;
    for (int64_t k = 0; k < size; k++) total += pow(values[place * size + k] - mean_here, 2);
    found[place] = total / (size - correction);
    if (is_root) found[place] = sqrt(found[place]);
    middle[place] = mean_here;
  }
  put(tensor(task, variance_at), found);
  if (mean_at >= 0) put(tensor(task, mean_at), middle);
  return SUCCESS;
}
static int only_variance(Task *task) { return variance(task, 1, integer(task, 2), 4, -1, false); }
static int only_deviation(Task *task) { return variance(task, 1, integer(task, 2), 4, -1, true); }
static int variance_and_mean(Task *task) { return variance(task, 1, integer(task, 2), 4, 5, false); }
static int deviation_and_mean(Task *task) { return variance(task, 1, integer(task, 2), 4, 5, true); }

const Operator reduction_operators[] = {
    {"aclnnReduceSum", "tabit", sum, LAST}, {"aclnnMean", "tabit", mean, LAST},
    {"aclnnMax", "tt", highest_of_all, LAST}, {"aclnnMin", "tt", lowest_of_all, LAST},
    {"aclnnAmax", "tabt", highest, LAST}, {"aclnnAmin", "tabt", lowest, LAST},
    {"aclnnAll", "tabt", all_true, LAST}, {"aclnnAny", "tabt", any_true, LAST},
    {"aclnnLinalgVectorNorm", "tsabit", norm, LAST}, {"aclnnNorm", "tsabt", norm, LAST},
    {"aclnnProd", "tit", product, LAST}, {"aclnnProdDim", "tlbit", product_of_axis, LAST},
    {"aclnnArgMax", "tlbt", place_of_highest, LAST}, {"aclnnArgMin", "tlbt", place_of_lowest, LAST},
    {"aclnnMaxDim", "tlbtt", highest_and_place, LAST}, {"aclnnMinDim", "tlbtt", lowest_and_place, LAST},
    {"aclnnCumsum", "tlit", cumulative_sum, LAST}, {"aclnnAllFinite", "Lt", find_bad, LAST},
    {"aclnnVar", "tabbt", only_variance, LAST}, {"aclnnVarCorrection", "talbt", only_variance, LAST},
    {"aclnnStd", "talbt", only_deviation, LAST}, {"aclnnVarMean", "talbtt", variance_and_mean, LAST},
    {"aclnnStdMeanCorrection", "talbtt", deviation_and_mean, LAST},
    END,
};

const Operator reduction_aclops[] = {
    {"ReduceSum", "", old_sum, 0}, {"ReduceSumD", "", old_sum, 0}, {"ReduceMean", "", old_mean, 0},
    {"ReduceMeanD", "", old_mean, 0}, {"ReduceMax", "", old_max, 0}, {"ReduceMin", "", old_min, 0},
    {"ReduceAll", "", old_all, 0}, {"ReduceAny", "", old_any, 0},
    {"ArgMaxV2", "", old_place_of_highest, 0},
    END,
};
