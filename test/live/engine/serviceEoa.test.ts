import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Engine } from "../../../src/application/engine/Engine.js"
import * as EstimateGas from "../../../src/application/operation/EstimateGas.js"
import { Bundler } from "../../../src/application/ports/Bundler.js"
import { ChainRpc } from "../../../src/application/ports/ChainRpc.js"
import { Journal } from "../../../src/application/ports/Journal.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import { SystemSigners } from "../../../src/application/ports/Signers.js"
import * as Hex from "../../../src/domain/evm/Hex.js"
import * as Conditions from "../../../src/domain/op/Conditions.js"
import * as Nonce from "../../../src/domain/op/Nonce.js"
import * as Percent from "../../../src/domain/op/Percent.js"
import * as UserOperation from "../../../src/domain/op/UserOperation.js"
import { Address, account, type Stack, startStack } from "../../support/stack/Stack.js"

const dead = Address.unsafe(`0x${"de".repeat(20)}`)
const ether = 10n ** 18n

describe("a bundle of the service's own EOA", () => {
  let stack: Stack

  beforeAll(async () => {
    stack = await startStack({ profile: { bumpAfterMillis: 300 } })
  })
  afterAll(() => stack.stop())

  it("goes through its own lane, is priced anew by its own key, and lands", async () => {
    const [wallet] = await stack.create("owned")
    await stack.mint(String(wallet), 10n)
    const { settings } = stack
    const estimated = await stack.ask(
      EstimateGas.run(stack.caller(), {
        operations: [
          {
            salt: "owned",
            walletCustody: 1,
            to: Address.unsafe(await stack.token.getAddress()),
            funcSignature: "transfer(address,uint256)",
            funcParams: [dead, "3"]
          }
        ],
        settings: { rpc: settings.rpc, entryPoint: settings.entryPoint }
      })
    )
    const [given] = estimated.userOps
    if (given === undefined) throw new Error("an op was expected")
    const op = Either.getOrThrow(UserOperation.decode("v0.7", Hex.unsafe(given.encodedUserOp)))
    const userOpHash = Hex.unsafe32(given.userOpHash)
    const proof = Hex.unsafe(stack.signer.signingKey.sign(userOpHash).serialized)
    const signature = Conditions.encodeSignature(Conditions.none, proof)
    const chainId = BigInt(stack.anvil.chainId)

    await stack.provider.send("evm_setAutomine", [false])
    const submitter = await stack.ask(
      Effect.gen(function* () {
        const journal = yield* Journal
        const bundler = yield* Bundler
        const rpcs = yield* ChainRpc
        const networks = yield* Networks
        const { serviceEoa } = yield* SystemSigners
        const key = yield* serviceEoa
        const profile = yield* networks.profile(account, chainId)
        if (profile === null) return yield* Effect.dieMessage("the chain is configured")
        const chain = yield* rpcs.connect(settings.rpc, "operator")
        const space = {
          authority: key.address,
          chainId,
          entryPoint: settings.entryPoint,
          wallet: op.sender
        }
        yield* journal.accept({
          requestId: "own",
          accountId: account,
          endpoint: "/executeEncoded",
          chainId,
          body: "{}",
          idempotency: null,
          ops: [
            {
              index: 0,
              space,
              nonceKey: Nonce.keyOf(op.nonce),
              sequence: Nonce.sequenceOf(op.nonce),
              userOpHash,
              reserve: 1n,
              returned: null
            }
          ],
          funds: [{ space, available: ether }],
          deployments: [],
          failed: []
        })
        yield* bundler.submit({
          requestId: "own",
          chain,
          profile,
          access: {
            accountId: account,
            key: "serviceEoa",
            rpc: Redacted.make(settings.rpc),
            trust: "operator"
          },
          version: "v0.7",
          entryPoint: settings.entryPoint,
          ops: [{ index: 0, op: { ...op, signature }, userOpHash }],
          submitter: key,
          prices: {
            maxFeePerGas: op.maxFeePerGas,
            maxPriorityFeePerGas: op.maxPriorityFeePerGas,
            legacy: false
          },
          l1Fee: 0n,
          gasBound: profile.caps.transactionGas,
          gasOvershoot: Percent.zero
        })
        return key.address
      }).pipe(Effect.orDie)
    )
    const versions = () =>
      stack.ask(
        Effect.orDie(
          Effect.map(
            Effect.flatMap(Journal, (journal) => journal.openOf({ chainId, signer: submitter })),
            ([record]) => record?.versions.length ?? 0
          )
        )
      )
    await expect.poll(versions, { timeout: 10_000 }).toBeGreaterThan(1)
    await stack.provider.send("evm_setAutomine", [true])
    await stack.provider.send("evm_mine", [])
    const landed = await stack.ask(
      Effect.flatMap(Engine, ({ releases }) =>
        releases.until(
          "own",
          Effect.orDie(
            Effect.map(
              Effect.flatMap(Journal, (journal) => journal.request("own")),
              (record) => (record?.ops[0]?.state === "settled" ? record.ops[0] : null)
            )
          )
        )
      )
    )
    expect(landed.success).toBe(true)
    const transaction = await stack.provider.getTransaction(String(landed.txHash))
    expect(transaction?.from).toBe(submitter)
    expect(await stack.balanceOf(dead)).toBe(3n)
  })
})
