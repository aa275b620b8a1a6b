// A PKCS #11 library that stands before another one (INTERPOSER_TARGET). What it does is in the folder INTERPOSER_FOLDER:
// the file `<function>` holds "<return value> <milliseconds> <times>" and makes the next calls of that function slow and,
// with a value other than 0, refused. Each call appends the function's name to the file `calls`.
#define CK_PTR *
#define CK_DEFINE_FUNCTION(returnType, name) returnType name
#define CK_DECLARE_FUNCTION(returnType, name) returnType name
#define CK_DECLARE_FUNCTION_POINTER(returnType, name) returnType(*name)
#define CK_CALLBACK_FUNCTION(returnType, name) returnType(*name)
#ifndef NULL_PTR
#define NULL_PTR 0
#endif
#include "pkcs11/pkcs11.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <unistd.h>

static CK_FUNCTION_LIST own;
static CK_FUNCTION_LIST_PTR target;
static std::mutex lock;

static CK_RV before(const char *name)
{
  unsigned long value = 0, milliseconds = 0, times = 0;
  {
    std::lock_guard<std::mutex> guard(lock);
    const std::string folder = getenv("INTERPOSER_FOLDER");
    const int calls = open((folder + "/calls").c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
    const std::string line = std::string(name) + "\n";
    if (write(calls, line.c_str(), line.size()) < 0) abort();
    close(calls);
    const std::string path = folder + "/" + name;
    if (FILE *file = fopen(path.c_str(), "r"))
    {
      if (fscanf(file, "%lu %lu %lu", &value, &milliseconds, &times) != 3) times = 0;
      fclose(file);
      if (times > 1)
      {
        file = fopen(path.c_str(), "w");
        fprintf(file, "%lu %lu %lu", value, milliseconds, times - 1);
        fclose(file);
      }
      else unlink(path.c_str());
    }
  }
  if (times == 0) return CKR_OK;
  usleep(milliseconds * 1000);
  return value;
}

#define INTERPOSED(name, parameters, arguments)    \
  static CK_RV my_##name parameters                \
  {                                                \
    const CK_RV value = before(#name);             \
    return value == CKR_OK ? target->name arguments : value; \
  }

INTERPOSED(C_Initialize, (CK_VOID_PTR a), (a))
INTERPOSED(C_Finalize, (CK_VOID_PTR a), (a))
INTERPOSED(C_OpenSession, (CK_SLOT_ID a, CK_FLAGS b, CK_VOID_PTR c, CK_NOTIFY d, CK_SESSION_HANDLE_PTR e), (a, b, c, d, e))
INTERPOSED(C_CloseSession, (CK_SESSION_HANDLE a), (a))
INTERPOSED(C_Login, (CK_SESSION_HANDLE a, CK_USER_TYPE b, CK_UTF8CHAR_PTR c, CK_ULONG d), (a, b, c, d))
INTERPOSED(C_FindObjectsInit, (CK_SESSION_HANDLE a, CK_ATTRIBUTE_PTR b, CK_ULONG c), (a, b, c))
INTERPOSED(C_SignInit, (CK_SESSION_HANDLE a, CK_MECHANISM_PTR b, CK_OBJECT_HANDLE c), (a, b, c))
INTERPOSED(C_Sign, (CK_SESSION_HANDLE a, CK_BYTE_PTR b, CK_ULONG c, CK_BYTE_PTR d, CK_ULONG_PTR e), (a, b, c, d, e))

/// The file `flags` holds what the tokens' flags have beside their own.
static CK_RV my_C_GetTokenInfo(CK_SLOT_ID a, CK_TOKEN_INFO_PTR b)
{
  const CK_RV value = before("C_GetTokenInfo");
  const CK_RV answer = value == CKR_OK ? target->C_GetTokenInfo(a, b) : value;
  unsigned long flags = 0;
  if (FILE *file = fopen((std::string(getenv("INTERPOSER_FOLDER")) + "/flags").c_str(), "r"))
  {
    if (fscanf(file, "%lu", &flags) == 1 && answer == CKR_OK) b->flags |= flags;
    fclose(file);
  }
  return answer;
}

extern "C" CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR list)
{
  void *library = dlopen(getenv("INTERPOSER_TARGET"), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return CKR_GENERAL_ERROR;
  CK_C_GetFunctionList get = (CK_C_GetFunctionList)dlsym(library, "C_GetFunctionList");
  const CK_RV value = get(&target);
  if (value != CKR_OK) return value;
  own = *target;
  own.C_Initialize = my_C_Initialize;
  own.C_Finalize = my_C_Finalize;
  own.C_GetTokenInfo = my_C_GetTokenInfo;
  own.C_OpenSession = my_C_OpenSession;
  own.C_CloseSession = my_C_CloseSession;
  own.C_Login = my_C_Login;
  own.C_FindObjectsInit = my_C_FindObjectsInit;
  own.C_SignInit = my_C_SignInit;
  own.C_Sign = my_C_Sign;
  *list = &own;
  return CKR_OK;
}
