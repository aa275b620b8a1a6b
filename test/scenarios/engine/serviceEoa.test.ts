import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { WakeUps } from "../../../src/application/lanes/requests/WakeUps.js"
import { Bundler } from "../../../src/application/ports/chain/Bundler.js"
import { ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import { SystemSigners } from "../../../src/application/ports/Signers.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as Nonce from "../../../src/domain/erc4337/Nonce.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import { Address, account, type Stack, startStack } from "../../support/stack/Stack.js"

const dead = Address.unsafe(`0x${"de".repeat(20)}`)
const ether = 10n ** 18n

describe("a bundle of the service's own EOA", () => {
  let stack: Stack

  beforeAll(async () => {
    stack = await startStack({ profile: { bumpAfterMillis: 300 } })
  })
  afterAll(() => stack.stop())

  const chainId = () => BigInt(stack.anvil.chainId)

  /** An op that its owner signed for anybody to submit: it sends 1 token. */
  const signedOp = async () => {
    const { settings } = stack
    const { userOps } = await stack.ask(
      EstimateGas.run(stack.caller(), {
        operations: [
          {
            salt: "owned",
            walletCustody: 1,
            to: Address.unsafe(await stack.token.getAddress()),
            funcSignature: "transfer(address,uint256)",
            funcParams: [dead, "1"]
          }
        ],
        settings: { rpc: settings.rpc, entryPoint: settings.entryPoint }
      })
    )
    const [given] = userOps
    if (given === undefined) throw new Error("an op was expected")
    const op = Either.getOrThrow(UserOperation.decode("v0.7", Hex.unsafe(given.encodedUserOp)))
    const userOpHash = Hex.unsafe32(given.userOpHash)
    const proof = Hex.unsafe(stack.signer.signingKey.sign(userOpHash).serialized)
    return { op: { ...op, signature: Conditions.encodeSignature(Conditions.none, proof) }, userOpHash }
  }

  /** Accepts and submits it for an account, by the service's EOA, whose address is the answer. */
  const submit = (
    requestId: string,
    accountId: AccountId,
    { op, userOpHash }: Awaited<ReturnType<typeof signedOp>>
  ) =>
    stack.ask(
      Effect.gen(function* () {
        const requestJournal = yield* RequestJournal
        const bundler = yield* Bundler
        const rpcs = yield* ChainRpc
        const networks = yield* Networks
        const { serviceEoa } = yield* SystemSigners
        const key = yield* serviceEoa
        const profile = yield* networks.profile(account, chainId())
        if (profile === null) return yield* Effect.dieMessage("the chain is configured")
        const { entryPoint, rpc } = stack.settings
        const chain = yield* rpcs.connect(rpc, "operator")
        const space = { authority: key.address, chainId: chainId(), entryPoint, wallet: op.sender }
        yield* requestJournal.accept({
          requestId,
          accountId,
          endpoint: "/executeEncoded",
          lane: { chainId: chainId(), signer: key.address },
          key: "serviceEoa",
          body: "{}",
          idempotency: null,
          elements: 1,
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
          failed: [],
          note: null,
          metadata: {},
          schedule: null
        })
        yield* bundler.submit({
          requestId,
          chain,
          profile,
          access: { accountId, key: "serviceEoa", rpc: Redacted.make(rpc), trust: "operator" },
          version: "v0.7",
          entryPoint,
          ops: [{ index: 0, op, userOpHash }],
          aggregate: null,
          alone: false,
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

  const landed = (requestId: string) =>
    stack.ask(
      Effect.flatMap(WakeUps, (releases) =>
        releases.until(
          requestId,
          Effect.orDie(
            Effect.map(
              Effect.flatMap(RequestJournal, (requestJournal) => requestJournal.request(requestId)),
              (record) => (record?.ops[0]?.state === "settled" ? record.ops[0] : null)
            )
          )
        )
      )
    )

  it("goes through its own lane, is priced anew by its own key, and lands", async () => {
    const [wallet] = await stack.create("owned")
    await stack.mint(String(wallet), 10n)
    const op = await signedOp()
    await stack.provider.send("evm_setAutomine", [false])
    const submitter = await submit("own", account, op)
    const mineAt = async (baseFee: bigint) => {
      await stack.provider.send("anvil_setNextBlockBaseFeePerGas", [`0x${baseFee.toString(16)}`])
      await stack.provider.send("evm_mine", [])
    }
    const versions = async () => {
      const [record] = await stack.ask(
        Effect.orDie(
          Effect.flatMap(TransactionJournal, (transactionJournal) =>
            transactionJournal.openOf({ chainId: chainId(), signer: submitter })
          )
        )
      )
      const [version, ...others] = record?.versions ?? []
      // Blocks come that do not take it, however often it is priced anew.
      if (version !== undefined && others.length === 0) await mineAt(600n * 10n ** 9n)
      return others.length
    }
    await expect.poll(versions, { timeout: 10_000, interval: 200 }).toBeGreaterThan(0)
    await stack.provider.send("evm_setAutomine", [true])
    await mineAt(10n ** 9n)
    const { success, txHash } = await landed("own")
    expect(success).toBe(true)
    expect((await stack.provider.getTransaction(String(txHash)))?.from).toBe(submitter)
    expect(await stack.balanceOf(dead)).toBe(1n)
  })

  it("is shared with other requests of the account, never with those of another one", async () => {
    const other = "others" as AccountId
    const transactionsOf = async (name: string, accounts: ReadonlyArray<AccountId>) => {
      const ops = []
      for (const _ of accounts) ops.push(await signedOp())
      await Promise.all(ops.map((op, n) => submit(`${name}${n}`, accounts[n] ?? account, op)))
      const outcomes = await Promise.all(ops.map((_, n) => landed(`${name}${n}`)))
      expect(outcomes.every(({ success }) => success)).toBe(true)
      return outcomes.map(({ txHash }) => txHash)
    }
    const alike = await transactionsOf("alike", [account, account, account])
    expect(new Set(alike).size).toBeLessThan(3)
    const mixed = await transactionsOf("mixed", [account, other, account])
    expect(new Set(mixed).size).toBe(mixed[0] === mixed[2] ? 2 : 3)
    expect([mixed[0], mixed[2]]).not.toContain(mixed[1])
  })
})
