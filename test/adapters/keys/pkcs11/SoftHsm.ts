import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Handle, PKCS11, Template } from "pkcs11js"

/** In this thread: it loads the same library as the adapter, which has a separate thread. */
export const binding: typeof import("pkcs11js") = createRequire(import.meta.url)("pkcs11js")

export const curves = {
  secp256k1: Buffer.from("06052b8104000a", "hex"),
  p256: Buffer.from("06082a8648ce3d030107", "hex")
} as const

/** Library paths of distributions. */
export const library =
  [
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib64/pkcs11/libsofthsm2.so",
    "/usr/local/lib/softhsm/libsofthsm2.so"
  ].find(existsSync) ?? "libsofthsm2.so"

export interface SoftHsm {
  readonly folder: string
  /** Folder of the tokens. */
  readonly tokens: string
  /** Environment that shows these tokens to a process. */
  readonly env: { readonly SOFTHSM2_CONF: string }
  readonly token: string
  readonly pin: string
  readonly remove: () => void
}

/** Makes another token; the library must not be initialized in this process. */
export const initToken = (hsm: SoftHsm, label: string, pin: string): void =>
  void execFileSync(
    "softhsm2-util",
    ["--init-token", "--free", "--label", label, "--so-pin", "5566778899", "--pin", pin],
    { env: { ...process.env, ...hsm.env }, stdio: "pipe" }
  )

/** A software HSM with one token, in a temporary folder. This process sees its tokens from now on. */
export const make = (): SoftHsm => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-softhsm-"))
  const tokens = join(folder, "tokens")
  const conf = join(folder, "softhsm2.conf")
  mkdirSync(tokens)
  writeFileSync(conf, `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`)
  const hsm = {
    folder,
    tokens,
    env: { SOFTHSM2_CONF: conf },
    token: "castellan",
    pin: "pin-of-the-user",
    remove: () => rmSync(folder, { recursive: true, force: true })
  }
  process.env.SOFTHSM2_CONF = conf
  initToken(hsm, hsm.token, hsm.pin)
  return hsm
}

export const loaded = (path = library): PKCS11 => {
  const pkcs11 = new binding.PKCS11()
  pkcs11.load(path)
  return pkcs11
}

export const slotOf = (pkcs11: PKCS11, label: string): Handle => {
  const slot = pkcs11
    .C_GetSlotList(true)
    .find((each) => pkcs11.C_GetTokenInfo(each).label.trimEnd() === label)
  if (slot === undefined) throw new Error(`no token ${label}`)
  return slot
}

/** Acts on the token as another program, while the library is not initialized in this process. */
export const within = <A>(hsm: SoftHsm, body: (pkcs11: PKCS11, session: Handle) => A): A => {
  const pkcs11 = loaded()
  pkcs11.C_Initialize({ flags: binding.CKF_OS_LOCKING_OK })
  try {
    const session = pkcs11.C_OpenSession(
      slotOf(pkcs11, hsm.token),
      binding.CKF_SERIAL_SESSION | binding.CKF_RW_SESSION
    )
    pkcs11.C_Login(session, binding.CKU_USER, hsm.pin)
    return body(pkcs11, session)
  } finally {
    pkcs11.C_Finalize()
  }
}

export interface KeyOptions {
  readonly id?: Buffer
  readonly curve?: Buffer
  readonly publicLabel?: string
  readonly more?: Template
}

/** A key pair as a careful operator's tools make it. */
export const generate = (pkcs11: PKCS11, session: Handle, label: string, options: KeyOptions = {}): void => {
  const { curve = curves.secp256k1, id = Buffer.from(label), more = [], publicLabel = label } = options
  pkcs11.C_GenerateKeyPair(
    session,
    { mechanism: binding.CKM_EC_KEY_PAIR_GEN },
    [
      { type: binding.CKA_TOKEN, value: true },
      { type: binding.CKA_PRIVATE, value: false },
      { type: binding.CKA_EC_PARAMS, value: curve },
      { type: binding.CKA_LABEL, value: publicLabel },
      { type: binding.CKA_ID, value: id }
    ],
    [
      { type: binding.CKA_TOKEN, value: true },
      { type: binding.CKA_PRIVATE, value: true },
      { type: binding.CKA_SENSITIVE, value: true },
      { type: binding.CKA_EXTRACTABLE, value: false },
      { type: binding.CKA_SIGN, value: true },
      { type: binding.CKA_LABEL, value: label },
      { type: binding.CKA_ID, value: id },
      ...more
    ]
  )
}
