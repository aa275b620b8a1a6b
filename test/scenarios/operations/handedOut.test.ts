import { hexlify, randomBytes } from "ethers"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecutePasskey from "../../../src/application/usecases/operations/ExecutePasskey.js"
import * as PasskeyHash from "../../../src/application/usecases/operations/PasskeyHash.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { signingHash } from "../../support/suite/Layouts.js"

let stack: Stack
const phone = Authenticator.make()
const wallets: Array<string> = []
beforeAll(async () => {
  stack = await startStack()
  wallets.push(...(await stack.create("a", "b", "c")))
})
afterAll(() => stack.stop())

const recipient = () => Address.unsafe(hexlify(randomBytes(20)))
const now = async () => Number((await stack.provider.getBlock("latest"))?.timestamp)
const ownless = () => ({ rpc: stack.settings.rpc, entryPoint: stack.settings.entryPoint })

const transfer = (salt: string, to: string, more: Partial<Operation> = {}): Operation => ({
  salt,
  walletCustody: 1,
  to: Address.unsafe(String(stack.token.target)),
  funcSignature: "transfer(address,uint256)",
  funcParams: [to, "1"],
  ...more
})

const estimate = (operations: ReadonlyArray<Operation>, settings: object = {}) =>
  stack.ask(EstimateGas.run(stack.caller(), { operations, settings: { ...stack.settings, ...settings } }))

type Op = Pick<EstimateGas.Response["userOps"][number], "encodedUserOp" | "userOpHash" | "signingHash">

const posting = (
  ops: ReadonlyArray<Op>,
  options: {
    readonly window?: object
    readonly over?: "userOpHash" | "signingHash"
    readonly settings?: object
  } = {}
) =>
  ExecuteEncoded.run(stack.caller(), {
    operations: ops.map((op) => ({
      encodedUserOp: Hex.unsafe(op.encodedUserOp),
      userOpHash: Hex.unsafe32(op.userOpHash),
      walletCustody: 1,
      signature: Hex.unsafe(stack.signer.signingKey.sign(op[options.over ?? "signingHash"]).serialized),
      ...options.window
    })),
    settings: { ...stack.settings, ...options.settings }
  })

describe("an op that is handed out", () => {
  beforeAll(async () => {
    for (const wallet of wallets) await stack.mint(wallet, 100n)
  })

  it.each(entryPointVersions)(
    "is bound to its window and its submitter on EntryPoint %s",
    async (version) => {
      const settings = { entryPoint: Address.unsafe(entryPoints[version]) }
      const to = recipient()
      const window = { validAfter: (await now()) - 10, validUnitl: (await now()) + 1_000 }
      const { error, userOps } = await estimate([transfer("a", to, window)], settings)
      const [op] = userOps
      if (op === undefined) throw new Error(String(error))
      expect(op.bundler).toBe(stack.signer.address)
      expect(op.signingHash).toBe(
        signingHash(op.userOpHash, {
          validUntil: window.validUnitl,
          validAfter: window.validAfter,
          bundler: stack.signer.address
        })
      )
      for (const [over, other] of [
        ["userOpHash", window],
        ["signingHash", {}],
        ["signingHash", { ...window, validUnitl: window.validUnitl + 1 }]
      ] as const) {
        const failure = await stack.refused(posting([op], { over, window: other, settings }))
        expect(failure).toMatchObject({ _tag: "Unprocessable", code: "invalid_signature" })
      }
      expect((await stack.ask(posting([op], { window, settings }))).status).toBe(1)
      expect(await stack.balanceOf(to)).toBe(1n)
    }
  )

  it("whose window is over is a 400, when it is handed out and when it comes back", async () => {
    const to = recipient()
    const over = { validUnitl: (await now()) - 1 }
    for (const refusal of [
      stack.refused(
        EstimateGas.run(stack.caller(), { operations: [transfer("a", to, over)], settings: stack.settings })
      ),
      stack.refused(
        PasskeyHash.run(stack.caller(), { operations: [transfer("a", to, over)], settings: ownless() })
      )
    ])
      expect(await refusal).toMatchObject({
        _tag: "InvalidRequest",
        code: "window_over",
        message: "validity window over",
        details: [{ path: "operations[0].validUnitl" }]
      })
    const window = { validUnitl: (await now()) + 5 }
    const { userOps } = await estimate([transfer("a", to, window)])
    await stack.provider.send("evm_increaseTime", [10])
    await stack.provider.send("evm_mine", [])
    expect(await stack.refused(posting(userOps, { window }))).toMatchObject({
      _tag: "InvalidRequest",
      code: "window_over"
    })
    expect(await stack.balanceOf(to)).toBe(0n)
  })

  it("whose window has not begun can be signed, and is a 422 until it has", async () => {
    const to = recipient()
    const window = { validAfter: (await now()) + 500 }
    const { error, userOps } = await estimate([transfer("a", to, window)])
    expect(error).toBeNull()
    expect(await stack.refused(posting(userOps, { window }))).toMatchObject({
      _tag: "Unprocessable",
      code: "not_valid_yet",
      message: "operation not valid yet"
    })
    await stack.provider.send("evm_increaseTime", [600])
    await stack.provider.send("evm_mine", [])
    expect((await stack.ask(posting(userOps, { window }))).status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(1n)
  })

  it("is told apart from one that cannot be", async () => {
    const { error, status, userOps } = await estimate([
      transfer("a", recipient()),
      transfer("a", recipient(), { funcParams: [recipient(), "1000000"] }),
      transfer("nowhere", recipient())
    ])
    expect(status).toBe(0)
    expect(error).toMatch(/^operations\[1\]: ERC20InsufficientBalance\(/)
    expect(userOps.map(({ aggrIndexes }) => aggrIndexes)).toEqual([[0]])
  })

  it("without settings.signer and without a signature is a 400", async () => {
    const { userOps } = await estimate([transfer("a", recipient())])
    const operations = userOps.map(({ encodedUserOp, userOpHash }) => ({
      encodedUserOp: Hex.unsafe(encodedUserOp),
      userOpHash: Hex.unsafe32(userOpHash),
      walletCustody: 1 as const
    }))
    const refusal = ExecuteEncoded.run(stack.caller(), { operations, settings: ownless() })
    expect(await stack.refused(refusal)).toMatchObject({
      code: "invalid_request",
      details: [
        {
          path: "operations[0].signature",
          message: "either signature or settings.signer is required"
        }
      ]
    })
  })
})

describe("ops that depend on each other", () => {
  let to: string
  const parked = keyOf(8).address
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
  const empty = async (wallet: string) => {
    const data = stack.token.interface.encodeFunctionData("transfer", [parked, await stack.balanceOf(wallet)])
    const hash = await stack.provider.send("eth_sendTransaction", [
      { from: wallet, to: stack.token.target, data }
    ])
    await stack.provider.waitForTransaction(hash)
  }

  const three = () => estimate([transfer("b", to, { dependsOn: 1 }), transfer("a", to), transfer("c", to)])
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
    const failure = await stack.refused(posting([...others.slice(1), dependant]))
    expect(failure).toMatchObject({ _tag: "InvalidRequest", code: "invalid_request" })
    expect(failure.details).toEqual([
      {
        path: "operations[1].encodedUserOp",
        message: `it depends on an operation of ${wallets[0]} that is not in this request: send both together`
      }
    ])
    expect((await stack.ask(posting(others))).status).toBe(1)
  })

  it("fail together when the first one cannot succeed any more, and the others go", async () => {
    const { userOps } = await three()
    await empty(String(wallets[0]))
    const answer = await stack.ask(posting(inOrder(userOps)))
    expect(answer).toMatchObject({
      status: 4,
      returnData: [
        { "0": { success: false, error: "dependency failed: operation 1" } },
        { "1": { success: false, error: expect.stringMatching(/^ERC20InsufficientBalance\(/) } },
        { "2": { success: true } }
      ]
    })
    expect(await stack.balanceOf(to)).toBe(1n)
  })

  it("are told when one fails before it is handed out", async () => {
    await empty(String(wallets[0]))
    const { error, status, userOps } = await three()
    expect({ error, status }).toEqual({ error: "operations[0]: dependency failed: operation 1", status: 0 })
    expect(userOps.map(({ aggrIndexes }) => aggrIndexes)).toEqual([[2]])
  })

  it.each([
    [[0], "operations[0].dependsOn", "an operation can not depend on itself"],
    [[2, 0], "operations[0].dependsOn", "expected the index of another operation, 0 to 1"],
    [[-1, 0], "operations[0].dependsOn", "expected the index of another operation, 0 to 1"],
    [[1, 0], "operations[0].dependsOn", "operations depend on each other: 0 -> 1 -> 0"]
  ])("like %j are a 400", async (on, path, message) => {
    const operations = on.map((dependsOn) => transfer("a", to, { dependsOn }))
    for (const refusal of [
      stack.refused(EstimateGas.run(stack.caller(), { operations, settings: stack.settings })),
      stack.refused(PasskeyHash.run(stack.caller(), { operations, settings: ownless() }))
    ])
      expect((await refusal).details).toEqual([{ path, message }])
  })
})

describe("/passkeyHash", () => {
  let wallet: string
  let journey: Journey.Journey
  beforeAll(async () => {
    journey = Journey.make(stack, "v0.7")
    wallet = await journey.created({
      salt: "phone",
      walletCustody: 5,
      passkeyPubKey: [phone.spki.toString("base64")]
    })
  })

  it("answers for every operation, in their order", async () => {
    const { results, status } = await stack.ask(
      PasskeyHash.run(stack.caller(), {
        operations: [
          transfer("a", recipient()),
          journey.transfer(wallet, recipient()),
          journey.transfer(recipient(), recipient())
        ],
        settings: ownless()
      })
    )
    const nothing = { userOpHash: null, signingHash: null, encodedUserOp: null, bundler: null }
    expect(status).toBe(1)
    expect(results).toEqual([
      { ...nothing, aggrIndexes: [0], error: "threshold not met: have 0 of 1" },
      {
        userOpHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
        signingHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
        encodedUserOp: expect.stringMatching(/^0x[0-9a-f]+$/),
        bundler: keyOf(2).address,
        aggrIndexes: [1],
        error: null
      },
      { ...nothing, aggrIndexes: [2], error: "wallet not deployed" }
    ])
  })

  it("binds its ops to the window and to the service's own EOA", async () => {
    const to = recipient()
    const window = { validUnitl: (await now()) + 1_000 }
    const op = await journey.hashed({ ...journey.transfer(wallet, to), ...window })
    expect(op.signingHash).toBe(
      signingHash(op.userOpHash, {
        validUntil: window.validUnitl,
        validAfter: 0,
        bundler: keyOf(2).address
      })
    )
    const assertion = phone.get(op.signingHash)
    const failure = await stack.refused(journey.executePasskey(op, assertion))
    expect(failure).toMatchObject({ code: "invalid_signature" })
    const answer = await stack.ask(journey.executePasskey(op, { ...assertion, ...window }))
    await journey.transferred(answer, wallet, to)
  })

  it("hands out ops that depend on each other", async () => {
    const to = recipient()
    const { results, status } = await stack.ask(
      PasskeyHash.run(stack.caller(), {
        operations: [journey.transfer(wallet, to), { ...journey.transfer(wallet, to), dependsOn: 0 }],
        settings: ownless()
      })
    )
    expect(status).toBe(0)
    const [first, second] = results.map(({ encodedUserOp, signingHash: hash, userOpHash }) => ({
      encodedUserOp: String(encodedUserOp),
      userOpHash: String(userOpHash),
      validationData: phone.get(String(hash))
    }))
    if (first === undefined || second === undefined) throw new Error("two ops were expected")
    const alone = await stack.refused(journey.executePasskey(second, second.validationData))
    expect(alone.details[0]?.message).toContain("is not in this request: send both together")
    const answer = await stack.ask(
      ExecutePasskey.run(stack.caller(), {
        operations: [second, first].map((op) => ({
          encodedUserOp: Hex.unsafe(op.encodedUserOp),
          userOpHash: Hex.unsafe32(op.userOpHash),
          validationData: op.validationData
        })),
        settings: ownless()
      })
    )
    expect(answer).toMatchObject({ status: 1, txHashes: [answer.txHash] })
    expect(await stack.balanceOf(to)).toBe(2n)
  })
})
