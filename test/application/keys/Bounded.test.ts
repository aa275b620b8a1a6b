import { describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { expect } from "vitest"
import * as Keys from "../../../src/application/keys/Keys.js"
import type { Signer } from "../../../src/application/ports/Signers.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const signer = (sign: Signer["sign"]): Signer =>
  Keys.withPatience({ address: Address.zero, publicKey: "04", type: "HSM", sign })
const digest = Hex.unsafe32(`0x${"11".repeat(32)}`)

describe("a key whose provider never answers", () => {
  test("is unavailable after half a minute, even in uninterruptible regions", function* () {
    const silent = signer(() => Effect.uninterruptible(Effect.never))
    const signing = yield* Effect.forkChild(Effect.uninterruptible(Effect.flip(silent.sign(digest))))
    yield* Time.adjust("30 seconds")
    expect(yield* Fiber.join(signing)).toMatchObject({ _tag: "SignerError", reason: "unavailable" })
  })

  test("a key that answers is not changed", function* () {
    const quick = signer(() => Effect.succeed(Hex.unsafe("0x22")))
    expect(yield* quick.sign(digest)).toBe("0x22")
  })
})
