// The C++ of CANN (namespace ge) that MindSpore calls: every operator "exists", and is empty.
// It is compiled with -D_GLIBCXX_USE_CXX11_ABI=0: MindSpore's plugin uses the older std::string.
//
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ge {

class AscendString {
 public:
  explicit AscendString(const char *text);
  const char *GetString() const;

 private:
  std::shared_ptr<std::string> text_;
};
AscendString::AscendString(const char *text) : text_(text ? std::make_shared<std::string>(text) : nullptr) {}
const char *AscendString::GetString() const { return text_ ? text_->c_str() : ""; }

class StatusFactory {
 public:
  static StatusFactory *Instance();

 private:
  std::map<uint32_t, std::string> texts_;
};
StatusFactory *StatusFactory::Instance() {
  static StatusFactory *only = new StatusFactory();
  return only;
}

class OperatorImpl;
class Operator {
 public:
  Operator() {}
  explicit Operator(const std::string &type);
  Operator(const std::string &name, const std::string &type);
  Operator(const AscendString &name, const AscendString &type);
  virtual ~Operator() = default;
  std::string GetName() const;
  std::string GetOpType() const;
  uint32_t GetName(AscendString &name) const;
  uint32_t GetOpType(AscendString &type) const;
  int GetDynamicOutputNum(const std::string &name) const;

 private:
  std::shared_ptr<OperatorImpl> impl_;
};
Operator::Operator(const std::string &) {}
Operator::Operator(const std::string &, const std::string &) {}
Operator::Operator(const AscendString &, const AscendString &) {}
std::string Operator::GetName() const { return ""; }
std::string Operator::GetOpType() const { return ""; }
uint32_t Operator::GetName(AscendString &) const { return 0; }
uint32_t Operator::GetOpType(AscendString &) const { return 0; }
int Operator::GetDynamicOutputNum(const std::string &) const { return 0; }

class OperatorFactory {
 public:
  static Operator CreateOperator(const std::string &name, const std::string &type);
  static Operator CreateOperator(const char *name, const char *type);
  static bool IsExistOp(const std::string &type);
  static bool IsExistOp(const char *type);
};
Operator OperatorFactory::CreateOperator(const std::string &, const std::string &) { return Operator(); }
Operator OperatorFactory::CreateOperator(const char *, const char *) { return Operator(); }
bool OperatorFactory::IsExistOp(const std::string &) { return true; }
bool OperatorFactory::IsExistOp(const char *) { return true; }

}  // namespace ge
