import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/endpoints/operations/ExecuteEncoded.js"
import * as ExecutePasskey from "../../../src/application/endpoints/operations/ExecutePasskey.js"
import * as PasskeyHash from "../../../src/application/endpoints/operations/PasskeyHash.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { errorsOf, type HandedOut, keyOf, useStack } from "../../support/stack/Stack.js"
import { signingHash } from "../../support/suite/Layouts.js"

const phone = Authenticator.make()
const wallets: Array<string> = []
const stack = useStack({}, async (stack) => {
  wallets.push(...(await stack.create("a", "b", "c")))
  for (const wallet of wallets) await stack.mint(wallet, 100n)
})

const recipient = Journey.recipient
const ownless = () => ({ rpc: stack.settings.rpc, entryPoint: stack.settings.entryPoint })
const transfer = (salt: string, to: string, more: Partial<Operation> = {}) =>
  stack.transfer(salt, to, "1", more)
const estimating = (operations: ReadonlyArray<Operation>) =>
  EstimateGas.run(stack.caller(), { operations, settings: stack.settings })
const hashing = (operations: ReadonlyArray<Operation>) =>
  PasskeyHash.run(stack.caller(), { operations, settings: ownless() })

const posting = (
  ops: ReadonlyArray<HandedOut>,
  { over = "signingHash", window = {} }: { over?: "userOpHash" | "signingHash"; window?: object } = {}
) =>
  ExecuteEncoded.run(stack.caller(), {
    operations: ops.map((op) => ({
      encodedUserOp: Hex.unsafe(op.encodedUserOp),
      userOpHash: Hex.unsafe32(op.userOpHash),
      walletCustody: 1,
      signature: Hex.unsafe(stack.signer.signingKey.sign(op[over]).serialized),
      ...window
    })),
    settings: stack.settings
  })

describe("an issued op", () => {
  it("is bound to its window and its submitter", async () => {
    const to = recipient()
    const time = await stack.now()
    const window = { validAfter: time - 10, validUnitl: time + 1_000 }
    const { error, userOps } = await stack.estimate([transfer("a", to, window)])
    const [op] = userOps
    if (op === undefined) throw new Error(String(error))
    const bundler = stack.signer.address
    const conditions = { validUntil: window.validUnitl, validAfter: window.validAfter, bundler }
    expect(op).toMatchObject({ bundler, signingHash: signingHash(op.userOpHash, conditions) })
    for (const wrong of [
      { over: "userOpHash", window },
      { over: "signingHash", window: {} },
      { over: "signingHash", window: { ...window, validUnitl: window.validUnitl + 1 } }
    ] as const)
      expect(await stack.refused(posting([op], wrong))).toMatchObject({
        _tag: "Unprocessable",
        code: "invalid_signature"
      })
    expect((await stack.ask(posting([op], { window }))).status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(1n)
  })

  it("with an expired window is a 400, when it is issued and when it comes back", async () => {
    const to = recipient()
    const over = [transfer("a", to, { validUnitl: (await stack.now()) - 1 })]
    for (const refusal of [stack.refused(estimating(over)), stack.refused(hashing(over))])
      expect(await refusal).toMatchObject({
        _tag: "InvalidRequest",
        code: "window_over",
        message: "validity window over",
        details: [{ path: "operations[0].validUnitl" }]
      })
    const window = { validUnitl: (await stack.now()) + 5 }
    const { userOps } = await stack.estimate([transfer("a", to, window)])
    await stack.later(10)
    const late = await stack.refused(posting(userOps, { window }))
    expect(late).toMatchObject({ _tag: "InvalidRequest", code: "window_over" })
    expect(await stack.balanceOf(to)).toBe(0n)
  })

  it("with a future window can be signed, and is a 422 until it begins", async () => {
    const to = recipient()
    const window = { validAfter: (await stack.now()) + 500 }
    const { error, userOps } = await stack.estimate([transfer("a", to, window)])
    expect(error).toBeNull()
    expect(await stack.refused(posting(userOps, { window }))).toMatchObject({
      _tag: "Unprocessable",
      code: "not_valid_yet",
      message: "operation not valid yet"
    })
    await stack.later(600)
    expect((await stack.ask(posting(userOps, { window }))).status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(1n)
  })

  it("without settings.signer and without a signature is a 400", async () => {
    const { userOps } = await stack.estimate([transfer("a", recipient())])
    const message = "either signature or settings.signer is required"
    expect(await stack.refused(stack.post(userOps, null, { signer: undefined }))).toMatchObject({
      code: "invalid_request",
      details: [{ path: "operations[0].signature", message }]
    })
  })
})

describe("ops that depend on each other", () => {
  let to: string
  beforeEach(async () => {
    to = recipient()
    for (const wallet of wallets) {
      await stack.provider.send("anvil_impersonateAccount", [wallet])
      await stack.mint(wallet, 10n)
    }
  })
  afterEach(async () => {
    for (const wallet of wallets) await stack.provider.send("anvil_stopImpersonatingAccount", [wallet])
  })
  /** Takes the wallet's tokens away. */
  const empty = async (wallet = "") => {
    const args = [keyOf(8).address, await stack.balanceOf(wallet)]
    const data = stack.token.interface.encodeFunctionData("transfer", args)
    const sent = [{ from: wallet, to: stack.token.target, data }]
    await stack.provider.waitForTransaction(await stack.provider.send("eth_sendTransaction", sent))
  }

  const three = () =>
    stack.estimate([transfer("b", to, { dependsOn: 1 }), transfer("a", to), transfer("c", to)])
  const inOrder = (ops: EstimateGas.Response["userOps"]) =>
    [...ops].sort(({ aggrIndexes: [a = 0] }, { aggrIndexes: [b = 0] }) => a - b)

  it("come back together and land in one transaction, whatever their order", async () => {
    const { error, userOps } = await three()
    expect(error).toBeNull()
    const answer = await stack.ask(posting(inOrder(userOps)))
    expect(answer).toMatchObject({ status: 1, txHashes: [answer.txHash] })
    expect(await stack.balanceOf(to)).toBe(3n)
    const again = await stack.ask(posting(inOrder(userOps)))
    expect(again).toMatchObject({ status: 1, txHash: answer.txHash })
  })

  it("are refused when one comes without the other", async () => {
    const [dependant, ...others] = inOrder((await three()).userOps)
    if (dependant === undefined) throw new Error("three ops were expected")
    const message = `it depends on an operation of ${wallets[0]} that is not in this request: send both together`
    expect(await stack.refused(posting([...others.slice(1), dependant]))).toMatchObject({
      _tag: "InvalidRequest",
      code: "invalid_request",
      details: [{ path: "operations[1].encodedUserOp", message }]
    })
    expect((await stack.ask(posting(others))).status).toBe(1)
  })

  it("fail together when the first one can no longer succeed, and the others go", async () => {
    const { userOps } = await three()
    await empty(wallets[0])
    const answer = await stack.ask(posting(inOrder(userOps)))
    expect(answer.status).toBe(4)
    expect(errorsOf(answer)).toEqual([
      "dependency failed: operation 1",
      expect.stringMatching(/^ERC20InsufficientBalance\(/),
      null
    ])
    expect(await stack.balanceOf(to)).toBe(1n)
  })

  it("report a failing one before it is issued", async () => {
    await empty(wallets[0])
    const { error, status, userOps } = await three()
    expect({ error, status }).toEqual({ error: "operations[0]: dependency failed: operation 1", status: 0 })
    expect(userOps.map(({ aggrIndexes }) => aggrIndexes)).toEqual([[2]])
  })
})

describe("/passkeyHash", () => {
  let wallet: string
  let journey: Journey.Journey
  beforeAll(async () => {
    journey = Journey.make(stack, "v0.7")
    const passkeyPubKey = [phone.spki.toString("base64")]
    wallet = await journey.created({ salt: "phone", walletCustody: 5, passkeyPubKey })
  })

  it("answers for every operation, in their order", async () => {
    const operations = [
      transfer("a", recipient()),
      journey.transfer(wallet, recipient()),
      journey.transfer(recipient(), recipient())
    ]
    const nothing = { userOpHash: null, signingHash: null, encodedUserOp: null, bundler: null }
    const word = expect.stringMatching(/^0x[0-9a-f]{64}$/)
    const encodedUserOp = expect.stringMatching(/^0x[0-9a-f]+$/)
    const bundler = keyOf(2).address
    expect(await stack.ask(hashing(operations))).toEqual({
      status: 1,
      results: [
        { ...nothing, aggrIndexes: [0], error: "threshold not met: have 0 of 1" },
        { userOpHash: word, signingHash: word, encodedUserOp, bundler, aggrIndexes: [1], error: null },
        { ...nothing, aggrIndexes: [2], error: "wallet not deployed" }
      ]
    })
  })

  it("binds its ops to the window and to the service's own EOA", async () => {
    const to = recipient()
    const window = { validUnitl: (await stack.now()) + 1_000 }
    const op = await journey.hashed({ ...journey.transfer(wallet, to), ...window })
    const conditions = { validUntil: window.validUnitl, validAfter: 0, bundler: keyOf(2).address }
    expect(op.signingHash).toBe(signingHash(op.userOpHash, conditions))
    const assertion = phone.get(op.signingHash)
    const failure = await stack.refused(journey.executePasskey(op, assertion))
    expect(failure).toMatchObject({ code: "invalid_signature" })
    const answer = await stack.ask(journey.executePasskey(op, { ...assertion, ...window }))
    await journey.transferred(answer, wallet, to)
  })

  it("issues ops that depend on each other", async () => {
    const to = recipient()
    const operations = [journey.transfer(wallet, to), { ...journey.transfer(wallet, to), dependsOn: 0 }]
    const { results, status } = await stack.ask(hashing(operations))
    expect(status).toBe(0)
    const [first, second] = results.map((op) => ({
      encodedUserOp: Hex.unsafe(String(op.encodedUserOp)),
      userOpHash: Hex.unsafe32(String(op.userOpHash)),
      validationData: phone.get(String(op.signingHash))
    }))
    if (first === undefined || second === undefined) throw new Error("two ops were expected")
    const run = (...ops: ReadonlyArray<typeof first>) =>
      ExecutePasskey.run(stack.caller(), { operations: ops, settings: ownless() })
    const alone = await stack.refused(run(second))
    expect(alone.details[0]?.message).toContain("is not in this request: send both together")
    const answer = await stack.ask(run(second, first))
    expect(answer).toMatchObject({ status: 1, txHashes: [answer.txHash] })
    expect(await stack.balanceOf(to)).toBe(2n)
  })
})
