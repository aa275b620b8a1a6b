import { describe, expect } from "@effect/vitest"
import { Effect, Redacted, Result } from "effect"
import * as Paymaster from "../../../src/application/payers/Paymaster.js"
import {
  type PaymasterAnswer,
  type PaymasterClient,
  PaymasterRpcError
} from "../../../src/application/ports/chain/PaymasterRpc.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import type { UserOperation } from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Site from "./Site.js"

const { codes, cost, dataOf, entryPoint, op, part, paymaster, version } = Site

describe("a paymaster with a service", () => {
  const answerOf = (over: Partial<PaymasterAnswer> = {}): PaymasterAnswer => ({
    paymaster,
    data: Hex.unsafe("0xabcd"),
    verificationGasLimit: 5n,
    postOpGasLimit: 6n,
    final: false,
    ...over
  })

  type Answers = Partial<Record<"stub" | "data", ReadonlyArray<PaymasterAnswer | PaymasterRpcError>>>

  /** A service that gives these answers in order, and repeats the last one. */
  const world = ({ data = [answerOf()], stub = [answerOf()] }: Answers = {}) =>
    Effect.gen(function* () {
      const { site } = yield* Site.make(10n * cost)
      const asked: Array<readonly [string, UserOperation]> = []
      const queues = { data: [...data], stub: [...stub] }
      const method =
        (name: "stub" | "data"): PaymasterClient["stub"] =>
        (chainId, offer) =>
          Effect.suspend(() => {
            expect([chainId, offer.version, offer.entryPoint]).toEqual([Make.chainId, version, entryPoint])
            asked.push([name, offer.op])
            const answer = queues[name].length > 1 ? queues[name].shift() : queues[name][0]
            if (answer === undefined) return Effect.die(new Error("the service must not be called"))
            return answer instanceof PaymasterRpcError ? Effect.fail(answer) : Effect.succeed(answer)
          })
      const client = Effect.succeed({ origin: "http://service", stub: method("stub"), data: method("data") })
      const payer = Paymaster.service(yield* InMemory.makeBudgets, client, site, Redacted.make({}))
      /** The signed op, or the code of the refusal. */
      const completed = Effect.gen(function* () {
        const drafted = yield* payer.draft(op)
        return Result.match(yield* Effect.result(payer.complete(drafted)), {
          onFailure: ({ failure }) => [failure.code, failure.message],
          onSuccess: ({ paymasterAndData }) => PaymasterData.read(version, paymasterAndData)
        })
      })
      return { asked, completed, payer }
    })

  const stubbed = (data: string) => ({
    ...op,
    paymasterAndData: dataOf(Hex.unsafe(data), { verificationGasLimit: 5n, postOpGasLimit: 6n })
  })

  test("measures an op with its stub, once, and prices it with the dearest bytes of that length", function* () {
    const { asked, payer } = yield* world()
    const drafted = yield* payer.draft(op)
    expect(drafted).toEqual(stubbed("0xabcd"))
    expect(yield* payer.draft(drafted)).toBe(drafted)
    expect(asked).toEqual([["stub", op]])
    expect(payer.priced(drafted)).toEqual(stubbed("0xffff"))
  })

  test("has the last word about its data, within the limits and the length of its stub", function* () {
    const final = { data: Hex.unsafe("0x12"), verificationGasLimit: null, postOpGasLimit: null }
    const { asked, completed } = yield* world({ data: [answerOf(final)] })
    expect(yield* completed).toEqual({
      paymaster,
      data: Hex.unsafe("0x12"),
      limits: { verificationGasLimit: 5n, postOpGasLimit: 6n }
    })
    expect(asked).toEqual([
      ["stub", op],
      ["data", stubbed("0xabcd")]
    ])
  })

  test("rejects data longer than the measured stub, and higher limits", function* () {
    const outcome = (data: Partial<PaymasterAnswer>) =>
      Effect.flatMap(world({ data: [answerOf(data)] }), ({ completed }) => completed)
    expect(yield* outcome({ data: Hex.unsafe("0xabcdef") })).toEqual([
      "paymaster_refused",
      "the paymaster's service gave 3 bytes of data after a stub of 2"
    ])
    for (const limits of [{ verificationGasLimit: 6n }, { postOpGasLimit: 7n }])
      expect(yield* outcome(limits)).toEqual([
        "paymaster_refused",
        "the paymaster's service raised its gas limits after its stub"
      ])
    // The sum of its limits is bounded.
    expect(yield* outcome({ verificationGasLimit: 6n, postOpGasLimit: 5n })).toMatchObject({
      limits: { verificationGasLimit: 6n, postOpGasLimit: 5n }
    })
  })

  test("with a final stub signs again for the op in its current form without the data", function* () {
    const again = answerOf({ final: true, data: Hex.unsafe("0x99") })
    const { asked, completed } = yield* world({ stub: [answerOf({ final: true }), again], data: [] })
    expect(yield* completed).toMatchObject({ data: "0x99" })
    expect(asked).toEqual([
      ["stub", op],
      ["stub", op]
    ])
    const changed = yield* world({
      stub: [answerOf({ final: true }), answerOf({ data: Hex.unsafe("0x77") })]
    })
    expect(yield* changed.completed).toMatchObject({ data: "0xabcd" })
    expect(changed.asked.map(([method]) => method)).toEqual(["stub", "stub", "data"])
  })

  test("identifies its stubs by wallet and nonce key, and queries the stubs of ops that another process measured", function* () {
    for (const [final, expected] of [
      [true, ["stub", "stub", "stub", "stub"]],
      [false, ["stub", "data", "stub", "data", "stub", "data"]]
    ] as const) {
      const { asked, payer } = yield* world({ stub: [answerOf({ final })] })
      const drafted = yield* payer.draft(op)
      yield* payer.complete({ ...drafted, nonce: op.nonce + 7n })
      yield* payer.complete({ ...drafted, nonce: op.nonce + 2n ** 64n })
      yield* payer.complete({ ...drafted, sender: Make.address(0xa2) })
      expect(asked.map(([method]) => method)).toEqual(expected)
    }
  })

  test("is not believed about another paymaster, nor with more data than an op may have", function* () {
    const other = answerOf({ paymaster: Make.address(1) })
    const long = answerOf({ data: Hex.unsafe(`0x${"00".repeat(PaymasterData.maxData + 1)}`) })
    for (const answer of [other, long]) {
      const { payer } = yield* world({ stub: [answer] })
      expect(yield* Effect.flip(payer.draft(op))).toMatchObject({ code: "paymaster_refused" })
      const later = yield* world({ data: [answer] })
      expect(yield* later.completed).toMatchObject(["paymaster_refused", expect.stringContaining("service")])
    }
  })

  test("distinguishes a refusal to pay from a missing reply, which names its host", function* () {
    const failure = (reason: PaymasterRpcError["reason"], origin = "https://service") =>
      new PaymasterRpcError({ reason, origin, message: "no" })
    for (const [error, told] of [
      [failure("refused"), ["paymaster_refused", "the paymaster's service refused the operation: no"]],
      [
        failure("unreachable"),
        ["paymaster_unavailable", "the paymaster's service did not answer: https://service: unreachable"]
      ],
      [failure("invalidUrl", ""), ["paymaster_unavailable", "the paymaster's service did not answer: no"]]
    ] as const) {
      const { completed } = yield* world({ data: [error] })
      expect(yield* completed).toEqual(told)
      const { payer } = yield* world({ stub: [error] })
      expect(yield* Effect.flip(payer.draft(op))).toMatchObject({
        code: told[0],
        message: told[1],
        details: [{ path: "settings.paymaster", message: told[1] }]
      })
    }
  })

  test("is paid out of its deposit as any paymaster is", function* () {
    const { payer } = yield* world()
    expect(payer.paymaster).toBe(paymaster)
    const ops = Array.from({ length: 11 }, (_, index) => part({ ...op, nonce: BigInt(index) }, index))
    expect(codes(yield* payer.reserve(ops))).toEqual([[10, "insufficient_funds"]])
  })
})
