import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Castellan from "../../src/index.js"
import * as PublicApi from "../../tools/PublicApi.js"
import { encoded, respond } from "../support/passkeys/Authenticator.js"
import { newPasskey } from "../support/suite/Keys.js"

/** An expression in the comment of a public function, and its value; null: it only has to evaluate. */
interface Example {
  readonly path: string
  readonly expression: string
  readonly value: string | null
}

const root = new URL("../..", import.meta.url)

const examples = [...PublicApi.sources().values()].flatMap(
  (path): ReadonlyArray<Example> =>
    [
      ...readFileSync(new URL(path, root), "utf8").matchAll(
        /^ \* @example (\S.*(?:\n \* (?!\/\/).*)*)\n(?: \* \/\/ (.*)\n)?/gm
      )
    ].map(([, expression = "", value]) => ({
      path,
      expression: expression.replaceAll("\n * ", "\n"),
      value: value ?? null
    }))
)

const passkey = newPasskey()

/** An op, and an assertion of `publicKey` for the hash of the salt "alice". */
const named = {
  op: {
    sender: Castellan.Address.zero,
    nonce: 0n,
    initCode: Castellan.Hex.empty,
    callData: Castellan.Hex.empty,
    callGasLimit: 50_000n,
    verificationGasLimit: 100_000n,
    preVerificationGas: 21_000n,
    maxFeePerGas: 2n,
    maxPriorityFeePerGas: 1n,
    paymasterAndData: Castellan.Hex.empty,
    signature: Castellan.Hex.empty
  },
  publicKey: {
    x: Castellan.Hex.unsafe32(passkey.publicKey.x),
    y: Castellan.Hex.unsafe32(passkey.publicKey.y)
  },
  auth: Result.getOrThrow(
    Castellan.WebAuthn.read(
      encoded(
        respond(Result.getOrThrow(Result.map(Castellan.Salt.from("alice"), Castellan.Salt.hash)), passkey)
      )
    )
  )
}

const scope = { ...Castellan, Cause, Redacted, Result, ...named }

const evaluated = (expression: string): unknown =>
  new Function(...Object.keys(scope), `return ${expression}`)(...Object.values(scope))

describe("examples of public functions", () => {
  it.each(examples)("the example of $path evaluates to its value: $expression", ({ expression, value }) => {
    const result = evaluated(expression)
    if (value !== null) expect(result).toEqual(evaluated(value))
  })

  it("examples are found", () => {
    expect(examples.filter(({ value }) => value !== null).length).toBeGreaterThanOrEqual(97)
  })
})
