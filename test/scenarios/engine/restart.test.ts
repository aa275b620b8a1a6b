import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import type { RequestRecord } from "../../../src/application/ports/journal/Requests.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import type { Failure } from "../../../src/application/request/Failure.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as ExecutePasskey from "../../../src/application/usecases/operations/ExecutePasskey.js"
import * as PasskeyHash from "../../../src/application/usecases/operations/PasskeyHash.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import * as Unstuck from "../../../src/application/usecases/operations/Unstuck.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import * as Power from "../../support/stack/Power.js"
import {
  Address,
  keyOf,
  type LifeOptions,
  type Ports,
  type Stack,
  startStack
} from "../../support/stack/Stack.js"

const ether = 10n ** 18n

const phone = Authenticator.make()

let stack: Stack
let folder: string
let counter: Address.Address
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "restart-"))
  // Room for a few ops in one transaction: a request of many takes several.
  stack = await startStack({ profile: { caps: { ...caps, transactionGas: 1_200_000n } } })
  counter = Address.unsafe(await stack.counter.getAddress())
  await stack.create("one", "two")
  await Journey.make(stack, "v0.7").created({
    salt: "phone",
    walletCustody: 5,
    passkeyPubKey: [phone.spki.toString("base64")]
  })
})
afterAll(async () => {
  await stack.stop()
  rmSync(folder, { recursive: true, force: true })
})

const caps = { maxFeePerGas: 500_000_000_000n, maxPriorityFeePerGas: 100_000_000_000n }

const hit = (salt: string, id: string): Operation => ({
  salt,
  walletCustody: 1,
  to: counter,
  funcSignature: "hit(bytes32)",
  funcParams: [id]
})

const countOf = async (id: string): Promise<number> => Number(await stack.counter.getFunction("count")(id))

type Work = Effect.Effect<unknown, Failure, Ports>

/** A request, and how often everything that it asks for was done, all of which must be 1 in the end. */
interface Task {
  readonly run: (caller: Caller) => Work
  readonly done: () => Promise<ReadonlyArray<number>>
  /** Fewest transactions that it takes. */
  readonly transactions?: number
  /** The EOA that sends them; left out: the signer's. */
  readonly sender?: string
}

const execute = (...operations: ReadonlyArray<Operation>) => ({
  run: (caller: Caller) => ExecuteOperations.run(caller, { operations, settings: stack.settings })
})

const tasks: Readonly<Record<string, (name: string) => Promise<Task>>> = {
  "/execute": async (name) => {
    const ids = ["a", "b", "c"].map((part) => hashOf(`${name} ${part}`))
    return {
      ...execute(...ids.map((id, n) => hit(n === 1 ? "two" : "one", id))),
      done: () => Promise.all(ids.map(countOf))
    }
  },
  "/execute in several transactions": async (name) => {
    const ids = Array.from({ length: 14 }, (_, n) => hashOf(`${name} ${n}`))
    return {
      ...execute(...ids.map((id) => hit("one", id))),
      done: () => Promise.all(ids.map(countOf)),
      transactions: 2
    }
  },
  "/execute with dependencies": async (name) => {
    const ids = Array.from({ length: 9 }, (_, n) => hashOf(`${name} ${n}`))
    return {
      // Three trees, each of which is to land in one transaction.
      ...execute(
        ...ids.map((id, n) => ({
          ...hit(n % 2 === 0 ? "one" : "two", id),
          ...(n >= 3 && { dependsOn: n - 3 })
        }))
      ),
      done: () => Promise.all(ids.map(countOf)),
      transactions: 2
    }
  },
  "/create": async (name) => {
    const salts = [`${name} x`, `${name} y`]
    for (const salt of salts) await stack.fund(stack.predict(salt), ether)
    const accounts = salts.map((salt) => ({ salt, walletCustody: 1 as const }))
    return {
      run: (caller) => CreateWallets.run(caller, { accounts, settings: stack.settings }),
      done: () =>
        Promise.all(
          salts.map(async (salt) => ((await stack.provider.getCode(stack.predict(salt))) === "0x" ? 0 : 1))
        )
    }
  },
  "/executeEncoded": async (name) => {
    const id = hashOf(name)
    const { userOps } = await stack.ask(
      EstimateGas.run(stack.caller(), { operations: [hit("two", id)], settings: stack.settings })
    )
    const operations = userOps.map((op) => ({
      encodedUserOp: Hex.unsafe(op.encodedUserOp),
      userOpHash: Hex.unsafe32(op.userOpHash),
      walletCustody: 1 as const,
      signature: Hex.unsafe(stack.signer.signingKey.sign(op.userOpHash).serialized)
    }))
    return {
      run: (caller) => ExecuteEncoded.run(caller, { operations, settings: stack.settings }),
      done: async () => [await countOf(id)]
    }
  },
  "/executeEncoded by the service's own EOA": async (name) => {
    const id = hashOf(name)
    const { rpc, entryPoint } = stack.settings
    const settings = { rpc, entryPoint }
    const { userOps } = await stack.ask(
      EstimateGas.run(stack.caller(), { operations: [hit("two", id)], settings })
    )
    const operations = userOps.map((op) => ({
      encodedUserOp: Hex.unsafe(op.encodedUserOp),
      userOpHash: Hex.unsafe32(op.userOpHash),
      walletCustody: 1 as const,
      signature: Hex.unsafe(stack.signer.signingKey.sign(op.signingHash).serialized)
    }))
    return {
      run: (caller) => ExecuteEncoded.run(caller, { operations, settings }),
      done: async () => [await countOf(id)],
      sender: keyOf(2).address
    }
  },
  "/executePasskey": async (name) => {
    const id = hashOf(name)
    const { rpc, entryPoint } = stack.settings
    const settings = { rpc, entryPoint }
    const { results } = await stack.ask(
      PasskeyHash.run(stack.caller(), {
        operations: [{ ...hit("phone", id), walletCustody: 5 }],
        settings
      })
    )
    const operations = results.map((op) => ({
      encodedUserOp: Hex.unsafe(String(op.encodedUserOp)),
      userOpHash: Hex.unsafe32(String(op.userOpHash)),
      validationData: phone.get(String(op.signingHash))
    }))
    return {
      run: (caller) => ExecutePasskey.run(caller, { operations, settings }),
      done: async () => [await countOf(id)],
      sender: keyOf(2).address
    }
  },
  "/transactSigner": async (name) => {
    const id = hashOf(name)
    const { rpc, signer } = stack.settings
    return {
      run: (caller) =>
        TransactSigner.run(caller, {
          to: counter,
          funcSignature: "hit(bytes32)",
          funcParams: [id],
          settings: { rpc, signer }
        }),
      done: async () => [await countOf(id)]
    }
  }
}

const sentBy = ({ sender = stack.signer.address }: Task): Promise<number> =>
  stack.provider.getTransactionCount(sender)

/** What is set aside of the account's money. */
const held = Effect.flatMap(Budgets, (budgets) => Effect.orDie(budgets.open(BigInt(stack.anvil.chainId))))

const pending = async (): Promise<number> => Number((await stack.provider.send("txpool_status", [])).pending)

const recordOf = (runtime: ReturnType<Stack["begin"]>, requestId: string): Promise<RequestRecord | null> =>
  runtime.runPromise(
    Effect.flatMap(RequestJournal, (requestJournal) => Effect.orDie(requestJournal.request(requestId)))
  )

/**
 * An answer without what differs from one transaction to the next: hashes, places in the chain, and the gas, which is
 * that of the receipts.
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
  const blank = (value: unknown, key = ""): unknown => {
    if (Array.isArray(value)) return value.map((each) => blank(each))
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, blank(each, name)]))
    if (["gasUsed", "cumulativeGasUsed", "effectiveGasPrice", "logIndex", "salt"].includes(key))
      return typeof value
    if (["actualGasCost", "actualGasUsed", "nonce", "totalDeposit"].includes(key)) return typeof value
    return key !== "result" && key !== "eventDef" && typeof value === "string" && value.startsWith("0x")
      ? "hex"
      : value
  }
  // Whether a wallet pays into the EntryPoint depends on what is left of its operations before, and how many transactions
  // there are on what is tried together.
  const logs = (answer.logs as ReadonlyArray<{ readonly eventName: string | null }>).filter(
    ({ eventName }) => eventName !== "Deposited" && eventName !== "BeforeExecution"
  )
  return { ...(blank({ ...answer, logs }) as object), txHashes: typeof answer.txHashes }
}

let databases = 0
const freshDatabase = () => {
  databases += 1
  return join(folder, `${databases}.sqlite`)
}

/** A second life on the same database: it takes up the request, answers it, and works on. */
const secondLife = async (task: Task, requestId: string, life: LifeOptions, before: number) => {
  const runtime = stack.begin(life)
  try {
    await runtime.runPromise(Sweep.start)
    await expect
      .poll(async () => (await recordOf(runtime, requestId))?.outcome ?? null, { timeout: 15_000 })
      .not.toBeNull()
    const record = await recordOf(runtime, requestId)
    const stored = JSON.parse(record?.outcome ?? "{}")
    expect(stored.answer.status).toBe(1)
    expect(await task.done()).toEqual((await task.done()).map(() => 1))
    expect(await pending()).toBe(0)
    const mined = await sentBy(task)
    expect(mined - before).toBe(stored.answer.txHashes.length)
    expect(stored.answer.txHashes.length).toBeGreaterThanOrEqual(task.transactions ?? 1)
    expect(record?.ops.every(({ state }) => state === "settled")).toBe(true)
    expect(
      await runtime.runPromise(
        Effect.flatMap(TransactionJournal, (transactionJournal) => transactionJournal.open)
      )
    ).toEqual([])
    await expect.poll(() => runtime.runPromise(held), { timeout: 5_000 }).toEqual([])
    const next = hashOf(`next of ${requestId}`)
    await runtime.runPromise(execute(hit("one", next)).run(stack.caller()))
    expect(await countOf(next)).toBe(1)
    return stored.answer
  } finally {
    await runtime.dispose()
  }
}

const spots: ReadonlyArray<readonly [string, Power.Spot]> = [
  ["is accepted", { step: "accept", moment: "after" }],
  ["has its nonce", { step: "allocate", moment: "after" }],
  ["has its transaction stored and not sent", { step: "recordSigned", moment: "after" }],
  ["has its transaction mined and not settled", { step: "settle", moment: "before" }],
  ["is settled", { step: "settle", moment: "after" }],
  ["is settled and about to be answered", { step: "finish", moment: "before" }]
]

describe.each(Object.keys(tasks))("%s", (endpoint) => {
  const taskOf = (name: string): Promise<Task> => {
    const make = tasks[endpoint]
    if (make === undefined) throw new Error("a task was expected")
    return make(name)
  }

  /** What a life that nothing interrupts answers. */
  let uninterrupted: unknown
  beforeAll(async () => {
    const task = await taskOf(`${endpoint} uninterrupted`)
    const answer = await stack.ask(task.run(stack.caller()))
    uninterrupted = await contentOf(JSON.parse(JSON.stringify(answer)))
  })

  it.each(spots)("goes on to its answer, done once, when the power fails once it %s", async (_, spot) => {
    const caller = stack.caller()
    const task = await taskOf(`${endpoint} ${spot.step} ${spot.moment}`)
    const before = await sentBy(task)
    const database = freshDatabase()
    const power = Power.make(spot)
    const first = stack.begin({ database, ...power.life })
    first.runFork(task.run(caller))
    await power.failed
    await first.dispose()
    const answer = await secondLife(task, caller.requestId, { database }, before)
    expect(await contentOf(answer)).toEqual(uninterrupted)
  })

  it("goes on to its answer, done once, when the power fails while its transaction waits", async () => {
    const caller = stack.caller()
    const task = await taskOf(`${endpoint} waiting`)
    const before = await sentBy(task)
    const database = freshDatabase()
    const power = Power.make()
    const first = stack.begin({ database, ...power.life })
    await stack.provider.send("evm_setAutomine", [false])
    first.runFork(task.run(caller))
    await expect.poll(pending, { timeout: 10_000 }).toBe(1)
    power.off()
    await first.dispose()
    await stack.provider.send("evm_setAutomine", [true])
    await stack.provider.send("evm_mine", [])
    const answer = await secondLife(task, caller.requestId, { database }, before)
    expect(await contentOf(answer)).toEqual(uninterrupted)
  })

  it("has the answer that was stored when the power fails behind it", async () => {
    const caller = stack.caller()
    const task = await taskOf(`${endpoint} finished`)
    const before = await sentBy(task)
    const database = freshDatabase()
    const power = Power.make({ step: "finish", moment: "after" })
    const first = stack.begin({ database, ...power.life })
    first.runFork(task.run(caller))
    await power.failed
    await first.dispose()
    const { txHash } = await secondLife(task, caller.requestId, { database }, before)
    expect((await stack.provider.getTransactionReceipt(txHash))?.status).toBe(1)
  })
})

describe("/unstuck", () => {
  it.each([
    ["has its new bytes stored and not sent", { step: "recordSigned", moment: "after", nth: 2 }],
    ["has its transaction mined and not settled", { step: "settle", moment: "before" }]
  ] as const)("tells of what it replaced when the power fails once it %s", async (_, spot) => {
    const { rpc, signer } = stack.settings
    const [caller, waiting] = [stack.caller(), stack.caller()]
    const database = freshDatabase()
    const power = Power.make(spot)
    const first = stack.begin({ database, ...power.life })
    await stack.provider.send("evm_setAutomine", [false])
    first.runFork(execute(hit("one", hashOf(`stuck ${spot.step}`))).run(waiting))
    await expect.poll(pending, { timeout: 10_000 }).toBe(1)
    const old = (await recordOf(first, waiting.requestId))?.txHashes[0]
    first.runFork(Unstuck.run(caller, { settings: { rpc, signer } }))
    if (spot.step === "settle") {
      await expect
        .poll(async () => (await recordOf(first, waiting.requestId))?.txHashes[0], { timeout: 10_000 })
        .not.toBe(old)
      await stack.provider.send("evm_mine", [])
    }
    await power.failed
    await first.dispose()
    await stack.provider.send("evm_setAutomine", [true])
    const runtime = stack.begin({ database })
    try {
      await runtime.runPromise(Sweep.start)
      await expect
        .poll(async () => (await recordOf(runtime, caller.requestId))?.outcome ?? null, { timeout: 15_000 })
        .not.toBeNull()
      const { answer } = JSON.parse((await recordOf(runtime, caller.requestId))?.outcome ?? "{}")
      expect(answer).toMatchObject({ status: 1, unknown: [], replaced: [{ oldTxHash: old }] })
      // Bytes that were stored and not sent may come too late for those before them.
      const { newTxHash } = answer.replaced[0]
      expect(newTxHash).not.toBe(old)
      expect(spot.step === "settle" ? [newTxHash] : [old, newTxHash]).toContain(answer.txHash)
      expect(answer.logs.length).toBeGreaterThan(0)
      expect((await stack.provider.getTransactionReceipt(answer.txHash))?.status).toBe(1)
    } finally {
      await runtime.dispose()
    }
  })
})

describe("a power cut during the recovery", () => {
  it("is no more than another one", async () => {
    const caller = stack.caller()
    const id = hashOf("again and again")
    const task: Task = { ...execute(hit("one", id)), done: async () => [await countOf(id)] }
    const before = await sentBy(task)
    const database = freshDatabase()
    const cuts: ReadonlyArray<Power.Spot> = [
      { step: "accept", moment: "after" },
      { step: "abandonUnsigned", moment: "after" },
      { step: "recordSigned", moment: "before" },
      { step: "recordSigned", moment: "after" },
      { step: "settle", moment: "before" },
      { step: "finish", moment: "before" }
    ]
    for (const [life, spot] of cuts.entries()) {
      const power = Power.make(spot)
      const runtime = stack.begin({ database, ...power.life })
      const work: Effect.Effect<unknown, unknown, Ports> = life === 0 ? task.run(caller) : Sweep.start
      runtime.runFork(work)
      await power.failed
      await runtime.dispose()
    }
    await secondLife(task, caller.requestId, { database }, before)
  })
})
