import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

/** A key encrypted under a password: a Web3 Secret Storage file, version 3, as geth, ethers and others write it. */
export interface Keystore {
  readonly json: Redacted.Redacted<string>
  readonly password: Redacted.Redacted<string>
}

/** `message` continues "the keystore ..."; nothing of file or password is in it. */
export class KeystoreError extends Data.TaggedError("KeystoreError")<{ readonly message: string }> {}

/** Most memory, bytes, that scrypt may ask for, and most rounds of PBKDF2: four times what wallets write. */
const mostMemory = 512 * 1_024 * 1_024
const mostRounds = 4_000_000

const no = (message: string) => new KeystoreError({ message })

/** Wallets do not agree on the case of names. */
const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null
    ? Object.entries(value).find(([key]) => key.toLowerCase() === name)?.[1]
    : undefined

const number = (value: unknown, name: string): number => {
  const found = member(value, name)
  return typeof found === "number" && found > 0 ? found : Number.NaN
}

/** Says what can be said without the password. The work that a file asks for is bounded before it is begun. */
const problemOf = (json: string): string | undefined => {
  const file = Result.getOrNull(Result.try((): unknown => JSON.parse(json)))
  if (file === null) return "is not JSON"
  if (String(member(file, "version")) !== "3") return "is not of version 3"
  const crypto = member(file, "crypto")
  const params = member(crypto, "kdfparams")
  switch (member(crypto, "kdf")) {
    case "scrypt":
      return 128 * number(params, "n") * number(params, "r") * Math.max(1, number(params, "p") / 8) <=
        mostMemory
        ? undefined
        : "asks for more scrypt than is reasonable"
    case "pbkdf2":
      return number(params, "c") <= mostRounds ? undefined : "asks for more PBKDF2 rounds than is reasonable"
    default:
      return "is encrypted with neither scrypt nor pbkdf2"
  }
}

const wrongPassword = (cause: unknown): boolean =>
  typeof cause === "object" && cause !== null && "argument" in cause && cause.argument === "password"

/** The private key in hex. Holds the process for about a second: for the start, not for requests. */
export const open = ({ json, password }: Keystore): Effect.Effect<Redacted.Redacted<string>, KeystoreError> =>
  Effect.suspend(() => {
    const problem = problemOf(Redacted.value(json))
    if (problem !== undefined) return Effect.fail(no(problem))
    return Effect.tryPromise({
      try: async () => {
        // Loaded for keystores alone: it brings more than a wallet.
        const { decryptKeystoreJson } = await import("ethers/wallet")
        const { privateKey } = await decryptKeystoreJson(Redacted.value(json), Redacted.value(password))
        return Redacted.make(privateKey)
      },
      // The cause is dropped: it may quote the file.
      catch: (cause) => no(wrongPassword(cause) ? "does not open with this password" : "can not be decrypted")
    })
  })
