import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import * as ExecutePasskey from "../../../src/application/endpoints/operations/ExecutePasskey.js"
import * as PasskeyHash from "../../../src/application/endpoints/operations/PasskeyHash.js"
import * as Unstuck from "../../../src/application/endpoints/operations/Unstuck.js"
import type { Failure } from "../../../src/application/failures/Failure.js"
import * as Start from "../../../src/application/operate/Start.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import * as Power from "../../support/stack/Power.js"
import { Address, keyOf, type LifeOptions, type Ports, useStack } from "../../support/stack/Stack.js"

const phone = Authenticator.make()
const caps = { maxFeePerGas: 500_000_000_000n, maxPriorityFeePerGas: 100_000_000_000n }
// Room for a few ops in one transaction: a large request takes several.
const stack = useStack({ profile: { caps: { ...caps, transactionGas: 1_200_000n } } }, async (stack) => {
  await stack.create("one", "two")
  const passkeyPubKey = [phone.spki.toString("base64")]
  await Journey.make(stack, "v0.7").created({ salt: "phone", walletCustody: 5, passkeyPubKey })
})
const ownless = () => ({ rpc: stack.settings.rpc, entryPoint: stack.settings.entryPoint })

type Work = Effect.Effect<unknown, Failure, Ports>

/** A request and the execution count of each of its parts, all of which must be 1 in the end. */
interface Task {
  readonly run: (caller: Caller) => Work
  readonly done: () => Promise<ReadonlyArray<number>>
  /** Fewest transactions that it takes. */
  readonly transactions?: number
  /** The EOA that sends them; left out: the signer's. */
  readonly sender?: string
}

/** Alternating operations of two wallets; `apart`: each depends on the operation `apart` places before it. */
const execute = (name: string, count: number, transactions: number, apart = count): Task => {
  const ids = Array.from({ length: count }, (_, n) => hashOf(`${name} ${n}`))
  const operations = ids.map((id, n) =>
    stack.hit(n % 2 === 0 ? "one" : "two", id, n >= apart ? { dependsOn: n - apart } : {})
  )
  return {
    run: (caller) => stack.execute(operations, {}, caller),
    done: () => stack.counts(...ids),
    transactions
  }
}
const encoded = async (name: string, settings: object, more: Pick<Task, "sender">): Promise<Task> => {
  const id = hashOf(name)
  const { userOps } = await stack.estimate([stack.hit("two", id)], settings)
  return {
    run: (caller) => stack.post(userOps, "signingHash", settings, caller),
    done: () => stack.counts(id),
    ...more
  }
}

const tasks: Readonly<Record<string, (name: string) => Promise<Task>>> = {
  "/execute": async (name) => execute(name, 3, 1),
  "/execute in several transactions": async (name) => execute(name, 14, 2),
  // Three trees, each of them for one transaction.
  "/execute with dependencies": async (name) => execute(name, 9, 2, 3),
  "/create": async (name) => {
    const salts = [`${name} x`, `${name} y`]
    for (const salt of salts) await stack.fund(stack.predict(salt), 10n ** 18n)
    const exists = async (salt: string) =>
      (await stack.provider.getCode(stack.predict(salt))) === "0x" ? 0 : 1
    return {
      run: (caller) => stack.createWallets(salts, {}, caller),
      done: () => Promise.all(salts.map(exists))
    }
  },
  "/executeEncoded": (name) => encoded(name, {}, {}),
  "/executeEncoded by the service's own EOA": (name) =>
    encoded(name, { signer: undefined }, { sender: keyOf(2).address }),
  "/executePasskey": async (name) => {
    const id = hashOf(name)
    const hit = stack.hit("phone", id, { walletCustody: 5 })
    const { results } = await stack.ask(
      PasskeyHash.run(stack.caller(), { operations: [hit], settings: ownless() })
    )
    const operations = results.map((op) => ({
      encodedUserOp: Hex.unsafe(String(op.encodedUserOp)),
      userOpHash: Hex.unsafe32(String(op.userOpHash)),
      validationData: phone.get(String(op.signingHash))
    }))
    return {
      run: (caller) => ExecutePasskey.run(caller, { operations, settings: ownless() }),
      done: () => stack.counts(id),
      sender: keyOf(2).address
    }
  },
  "/transactSigner": async (name) => {
    const to = Address.unsafe(String(stack.counter.target))
    const id = hashOf(name)
    return {
      run: (caller) => stack.transact({ to, funcSignature: "hit(bytes32)", funcParams: [id] }, {}, caller),
      done: () => stack.counts(id)
    }
  }
}

/**
 * An answer without the parts that vary by transaction: hashes, places in the chain, and gas, which comes from the
 * receipts.
 */
const contentOf = async (answer: Record<string, unknown>): Promise<unknown> => {
  const receipts = await Promise.all(
    (answer.txHashes as ReadonlyArray<string>).map((hash) => stack.provider.getTransactionReceipt(hash))
  )
  const last = receipts.at(-1)
  expect(answer).toMatchObject({
    txHash: last?.hash,
    gasUsed: Number(receipts.reduce((sum, receipt) => sum + (receipt?.gasUsed ?? 0n), 0n)),
    cumulativeGasUsed: Number(last?.cumulativeGasUsed),
    effectiveGasPrice: last?.gasPrice.toString()
  })
  const varying = ["gasUsed", "cumulativeGasUsed", "effectiveGasPrice", "logIndex", "salt"]
  varying.push("actualGasCost", "actualGasUsed", "nonce", "totalDeposit")
  const blank = (value: unknown, key = ""): unknown => {
    if (Array.isArray(value)) return value.map((each) => blank(each))
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, blank(each, name)]))
    if (varying.includes(key)) return typeof value
    return key !== "result" && key !== "eventDef" && typeof value === "string" && value.startsWith("0x")
      ? "hex"
      : value
  }
  // A wallet pays into the EntryPoint only when its earlier operations left too little, and the number of transactions
  // depends on the ops simulated together.
  const logs = (answer.logs as ReadonlyArray<{ readonly eventName: string | null }>).filter(
    ({ eventName }) => eventName !== "Deposited" && eventName !== "BeforeExecution"
  )
  return { ...(blank({ ...answer, logs }) as object), txHashes: typeof answer.txHashes }
}

/** Reserved part of the account's money. */
const held = Effect.flatMap(Budgets, (budgets) => Effect.orDie(budgets.open(BigInt(stack.anvil.chainId))))
const unsettled = Effect.flatMap(TransactionJournal, (journal) => journal.open)

/** A second life on the same database: it resumes the request, answers it, and keeps working. */
const secondLife = (task: Task, requestId: string, life: LifeOptions, before: number) =>
  stack.living(life, async (runtime) => {
    const { answer } = await stack.answerOf(runtime, requestId)
    expect(answer.status).toBe(1)
    expect(new Set(await task.done())).toEqual(new Set([1]))
    expect(await stack.pool(task.sender)).toEqual([])
    expect((await stack.nonce(task.sender)) - before).toBe(answer.txHashes.length)
    expect(answer.txHashes.length).toBeGreaterThanOrEqual(task.transactions ?? 1)
    const record = await stack.requestOf(runtime, requestId)
    expect(record?.ops.every(({ state }) => state === "settled")).toBe(true)
    expect(await runtime.runPromise(unsettled)).toEqual([])
    await expect.poll(() => runtime.runPromise(held), { timeout: 5_000 }).toEqual([])
    const next = hashOf(`next of ${requestId}`)
    await runtime.runPromise(stack.execute([stack.hit("one", next)]))
    expect(await stack.counts(next)).toEqual([1])
    return answer
  })

const spots: ReadonlyArray<readonly [string, Power.Spot]> = [
  ["is accepted", { step: "accept", moment: "after" }],
  ["is about to have its transaction stored", { step: "record", moment: "before" }],
  ["has its transaction stored and not sent", { step: "record", moment: "after" }],
  ["has its transaction mined and not settled", { step: "settle", moment: "before" }],
  ["is settled", { step: "settle", moment: "after" }],
  ["is settled and about to be answered", { step: "answer", moment: "before" }],
  ["is answered", { step: "answer", moment: "after" }]
]

describe.each(Object.entries(tasks))("%s", (endpoint, taskOf) => {
  /** The answer of an uninterrupted life. */
  let uninterrupted: unknown
  beforeAll(async () => {
    const task = await taskOf(`${endpoint} uninterrupted`)
    const answer = await stack.ask(task.run(stack.caller()))
    uninterrupted = await contentOf(JSON.parse(JSON.stringify(answer)))
  })

  it.each(spots)("resumes to its answer, done once, after a power cut once it %s", async (_, spot) => {
    const caller = stack.caller()
    const task = await taskOf(`${endpoint} ${spot.step} ${spot.moment}`)
    const before = await stack.nonce(task.sender)
    const database = stack.database()
    const power = Power.make(spot)
    const first = stack.begin({ database, ...power.life })
    first.runFork(task.run(caller))
    await power.failed
    await first.dispose()
    const answer = await secondLife(task, caller.requestId, { database }, before)
    expect(await contentOf(answer)).toEqual(uninterrupted)
  })

  it("resumes to its answer, done once, after a power cut while its transaction waits", async () => {
    const caller = stack.caller()
    const task = await taskOf(`${endpoint} waiting`)
    const before = await stack.nonce(task.sender)
    const database = stack.database()
    const power = Power.make()
    const first = stack.begin({ database, ...power.life })
    await stack.automine(false)
    first.runFork(task.run(caller))
    await stack.pooled(1, task.sender)
    power.off()
    await first.dispose()
    await stack.automine(true)
    await stack.mine()
    const answer = await secondLife(task, caller.requestId, { database }, before)
    expect(await contentOf(answer)).toEqual(uninterrupted)
  })
})

it.each([
  ["has noted what it replaces", { step: "note", moment: "after" }],
  ["is about to have its new bytes stored", { step: "replace", moment: "before" }],
  ["has its new bytes stored and not sent", { step: "replace", moment: "after" }],
  ["has its transaction mined and not settled", { step: "settle", moment: "before" }],
  ["is about to be at its end", { step: "fail", moment: "before" }],
  ["is at its end", { step: "fail", moment: "after" }]
] as const)("/unstuck reports its replacements after a power cut once it %s", async (_, spot) => {
  const { rpc, signer } = stack.settings
  const [caller, waiting] = [stack.caller(), stack.caller()]
  const database = stack.database()
  const power = Power.make(spot)
  const first = stack.begin({ database, ...power.life })
  const newest = async (life: Parameters<typeof stack.requestOf>[0] = first) =>
    (await stack.requestOf(life, waiting.requestId))?.txHashes[0]
  const isMined = spot.step === "settle" || spot.step === "fail"
  await stack.automine(false)
  const id = hashOf(`stuck ${spot.step} ${spot.moment}`)
  first.runFork(stack.execute([stack.hit("one", id)], {}, waiting))
  await stack.pooled(1)
  const old = await newest()
  first.runFork(Unstuck.run(caller, { settings: { rpc, signer } }))
  if (isMined) {
    await expect.poll(() => newest(), { timeout: 10_000 }).not.toBe(old)
    await stack.mine()
  }
  await power.failed
  await first.dispose()
  await stack.living({ database }, async (runtime) => {
    await expect.poll(() => newest(runtime), { timeout: 10_000 }).not.toBe(old)
    await stack.automine(true)
    await stack.mine()
    const { answer } = await stack.answerOf(runtime, caller.requestId)
    expect(answer).toMatchObject({ status: 1, unknown: [], replaced: [{ oldTxHash: old }] })
    // Stored and unsent bytes may come too late for the ones before them.
    const { newTxHash } = answer.replaced[0]
    expect(newTxHash).not.toBe(old)
    expect(isMined ? [newTxHash] : [old, newTxHash]).toContain(answer.txHash)
    expect(answer.logs.length).toBeGreaterThan(0)
    expect((await stack.provider.getTransactionReceipt(answer.txHash))?.status).toBe(1)
    expect(await stack.counts(id)).toEqual([1])
  })
})

it("a power cut during the recovery is harmless", async () => {
  const caller = stack.caller()
  const task = execute("again and again", 1, 1)
  const before = await stack.nonce()
  const database = stack.database()
  const cuts: ReadonlyArray<Power.Spot> = [
    { step: "accept", moment: "after" },
    { step: "ready", moment: "after" },
    { step: "record", moment: "before" },
    { step: "record", moment: "after" },
    { step: "settle", moment: "before" },
    { step: "answer", moment: "before" }
  ]
  for (const [life, spot] of cuts.entries()) {
    const power = Power.make(spot)
    const runtime = stack.begin({ database, ...power.life })
    const work: Effect.Effect<unknown, unknown, Ports> = life === 0 ? task.run(caller) : Start.start
    runtime.runFork(work)
    await power.failed
    await runtime.dispose()
  }
  await secondLife(task, caller.requestId, { database }, before)
})
