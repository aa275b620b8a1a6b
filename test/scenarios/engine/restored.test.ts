import { copyFileSync, existsSync } from "node:fs"
import { tmpdir } from "node:os"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { id as hashOf } from "ethers"
import { afterEach, describe, expect, it } from "vitest"
import * as Cancellations from "../../../src/application/answers/Cancellations.js"
import * as ExecutePasskey from "../../../src/application/endpoints/operations/ExecutePasskey.js"
import * as PasskeyHash from "../../../src/application/endpoints/operations/PasskeyHash.js"
import type { Failure } from "../../../src/application/failures/Failure.js"
import * as Start from "../../../src/application/operate/Start.js"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { RecoveryJournal } from "../../../src/application/ports/journal/RecoveryJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { startStandIn } from "../../support/bundler/StandIn.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import * as Finished from "../../support/process/Finished.js"
import * as Power from "../../support/stack/Power.js"
import {
  Address,
  keyOf,
  type LifeOptions,
  type Ports,
  type Runtime,
  useStack
} from "../../support/stack/Stack.js"

let multisig: Address.Address
// Foreign transactions here raise the prices, and with them the possible loss of the service's EOA.
const profile = { bumpAfterMillis: 600_000, serviceSubmission: { dailyLoss: 10n ** 18n } }
const phone = Authenticator.make()
const stack = useStack({ profile }, async (stack) => {
  await stack.create("one", "two")
  await Journey.make(stack, "v0.7").created({
    salt: "phone",
    walletCustody: 5,
    passkeyPubKey: [phone.spki.toString("base64")]
  })
  multisig = await Journey.make(stack, "v0.7").created({
    salt: "several",
    walletCustody: 3,
    signers: [{ clientId: "dev", versionId: "1" }, Journey.second, keyOf(9).address],
    threshold: "2"
  })
})

const lives: Array<Runtime> = []
afterEach(() => Promise.all(lives.splice(0).map((life) => life.dispose())))
/** The next life of the service over that file. */
const live = async (database: string, options: LifeOptions = {}) => {
  const life = stack.begin({ ...options, database })
  lives.push(life)
  await life.runPromise(Start.start)
  return life
}

type Work = (caller: Caller) => Effect.Effect<unknown, Failure, Ports>

/**
 * Begins this work and stops there. `backup`: a copy of the moment; `database`: the database of the continuing service.
 */
const stoppedAt = async (
  spot: Power.Spot,
  database: string,
  all: ReadonlyArray<Work>,
  profile: LifeOptions["profile"] = {}
) => {
  const backup = stack.database()
  const requestIds: Array<string> = []
  for (const work of all) {
    const power = Power.make(spot)
    const life = stack.begin({ database, profile, ...power.life })
    const caller = stack.caller()
    requestIds.push(caller.requestId)
    // A refused request never reaches the spot; a window may begin after its caller has waited.
    const ended = life.runPromise(Effect.flip(work(caller))).then(({ code, details }) => {
      if (code === "outcome_unknown") return power.failed
      throw new Error(`the work was refused: ${code} ${JSON.stringify(details)}`)
    })
    await Promise.race([power.failed, ended])
    ended.catch(() => {})
    await life.dispose()
  }
  for (const suffix of ["", "-wal"])
    if (existsSync(`${database}${suffix}`)) copyFileSync(`${database}${suffix}`, `${backup}${suffix}`)
  return { backup, database, requestIds }
}
/** Accepts this work without signing. */
const acceptedIn = (database: string, ...all: ReadonlyArray<Work>) =>
  stoppedAt({ step: "record", moment: "before" }, database, all)
const accepted = (...all: ReadonlyArray<Work>) => acceptedIn(stack.database(), ...all)
/** Signs its transaction too, which no node receives. */
const signedIn = (database: string, work: Work) =>
  stoppedAt({ step: "record", moment: "after" }, database, [work])
const signed = (work: Work) => signedIn(stack.database(), work)

const answersOf = async (life: Runtime, requestIds: ReadonlyArray<string>) => {
  const answers = []
  for (const requestId of requestIds) answers.push((await stack.answerOf(life, requestId)).answer)
  return answers
}
/** Runs the service on the database until these requests have their answers; returns them. */
const executed = async (
  database: string,
  requestIds: ReadonlyArray<string>,
  profile: LifeOptions["profile"] = {}
) => {
  const life = await live(database, { profile })
  const answers = await answersOf(life, requestIds)
  await life.dispose()
  return answers
}
/** The life with the backup answers as the continuing one did, and no work was repeated. */
const sameAnswers = async (
  { backup, requestIds }: Awaited<ReturnType<typeof accepted>>,
  before: ReadonlyArray<{ readonly txHash: string; readonly returnData: unknown }>
) => {
  const nonce = await stack.nonce()
  const after = await answersOf(await live(backup), requestIds)
  expect(after).toMatchObject(before.map(({ returnData, txHash }) => ({ status: 1, txHash, returnData })))
  expect(await stack.nonce()).toBe(nonce)
}
const once = async (...ids: ReadonlyArray<string>) =>
  expect(await stack.counts(...ids)).toEqual(ids.map(() => 1))

const heldOf = async (life: Runtime, requestId: string) => {
  const held = async () => (await stack.requestOf(life, requestId))?.held ?? null
  await expect.poll(held, { timeout: 30_000 }).not.toBeNull()
  return held()
}

const hit =
  (salt: string, id: string, settings: object = {}): Work =>
  (caller) =>
    stack.execute([stack.hit(salt, id)], settings, caller)
const directly =
  (id: string, settings: object = {}): Work =>
  (caller) => {
    const to = Address.unsafe(String(stack.counter.target))
    return stack.transact({ to, funcSignature: "hit(bytes32)", funcParams: [id] }, settings, caller)
  }
/** A foreign transaction of the key. */
const foreign = async () => stack.foreign(await stack.nonce())

/** Work executed since the backup; `between`: an action before it, so that an op is prepared differently. */
interface Case {
  readonly work: (id: string) => ReadonlyArray<Work> | Promise<ReadonlyArray<Work>>
  readonly from?: (...all: ReadonlyArray<Work>) => ReturnType<typeof accepted>
  readonly between?: () => Promise<unknown>
  readonly behind?: () => Promise<unknown>
  /** The id is not counted. */
  readonly isUncounted?: boolean
}

const known = async (id: string, settings: object) => {
  const before = await accepted(hit("one", hashOf(`${id} before`), settings))
  await executed(before.database, before.requestIds)
  return before.database
}
const afterAnother = (settings: () => object): Case => {
  let database = ""
  return {
    work: async (id) => {
      database = await known(id, settings())
      return [hit("one", id, settings())]
    },
    from: (...all) => acceptedIn(database, ...all)
  }
}

const cases: Readonly<Record<string, Case>> = {
  "an op under another hash": { work: (id) => [hit("one", id)] },
  "an op of EntryPoint v0.6 after one of the same key that the database knows": afterAnother(() => ({
    entryPoint: Address.unsafe(entryPoints["v0.6"])
  })),
  "an op of EntryPoint v0.8 after one of the same key that the database knows": afterAnother(() => ({
    entryPoint: Address.unsafe(entryPoints["v0.8"])
  })),
  "an op that the operator pays for, after one of the same key that the database knows": afterAnother(() => ({
    paymaster: Address.unsafe(stack.suite.paymaster)
  })),
  "a transaction of the signer, with a foreign one before and after it": {
    work: (id) => [directly(id)],
    between: foreign,
    behind: foreign
  },
  "a wallet's creation": {
    work: async (id) => {
      await stack.fund(stack.predict(id), 10n ** 18n)
      return [(caller) => stack.createWallets([id], {}, caller)]
    },
    isUncounted: true
  },
  "an op that its caller had estimated": {
    work: async (id) => {
      const { userOps } = await stack.estimate([stack.hit("one", id)])
      return [(caller) => stack.post(userOps, "signingHash", {}, caller)]
    }
  },
  "an op whose window is over": {
    work: async (id) => {
      const time = await stack.now()
      const window = { validAfter: time - 5, validUnitl: time + 300 }
      return [(caller) => stack.execute([stack.hit("one", id, window)], {}, caller)]
    },
    behind: () => stack.later(301)
  },
  "an op that was signed, and went under another nonce since a foreign transaction took its own": {
    work: (id) => [hit("one", id)],
    from: (work) => signed(work as Work),
    between: foreign
  },
  "a transaction of the signer that was signed, and went under another nonce": {
    work: (id) => [directly(id)],
    from: (work) => signed(work as Work),
    between: foreign
  }
}

describe("a database from before the work was executed", { timeout: 60_000 }, () => {
  it.each(Object.entries(cases))(
    "finds it on the chain and does not repeat it: %s",
    async (name, { behind, between = () => Promise.resolve(), from = accepted, isUncounted, work }) => {
      const id = hashOf(name)
      const stopped = await from(...(await work(id)))
      await between()
      await stack.mine()
      const before = await executed(stopped.database, stopped.requestIds)
      await behind?.()
      await sameAnswers(stopped, before)
      if (isUncounted !== true) await once(id)
    }
  )

  it("finds ops of several owners and dependent ops executed in foreign bundles", async () => {
    const ids = ["a", "b", "c", "other"].map((part) => hashOf(`together ${part}`))
    const [a = "", b = "", c = "", other = ""] = ids
    const operation = (id: string, more: object = {}) => {
      const { salt: _, ...rest } = stack.hit("", id, more)
      return { ...rest, wallet: multisig, walletCustody: 0 as const }
    }
    const stopped = await accepted(
      (caller) =>
        stack.execute(
          [operation(a), operation(b, { dependsOn: 0 }), operation(c, { dependsOn: 1 })],
          { cosigners: [Journey.second] },
          caller
        ),
      hit("two", other)
    )
    await stack.mine()
    await sameAnswers(stopped, await executed(stopped.database, stopped.requestIds))
    await once(...ids)
  })

  it("counts one executed transaction of two equal ones for the older request", async () => {
    const id = hashOf("equal")
    const { backup, database, requestIds } = await accepted(directly(id), directly(id))
    const before = await executed(database, requestIds)
    expect(await stack.counts(id)).toEqual([2])
    const after = await answersOf(await live(backup), requestIds)
    expect(after.map(({ status }) => status)).toEqual([1, 1])
    expect(new Set(after.map(({ txHash }) => txHash))).toEqual(new Set(before.map(({ txHash }) => txHash)))
    expect(await stack.counts(id)).toEqual([2])
  })

  it("executed work still waits in the pool: the lane signs only after it is mined and read", async () => {
    const [own, other] = [hashOf("pooled"), hashOf("pooled after")]
    const { backup, database, requestIds } = await accepted(directly(own), directly(other))
    await stack.automine(false)
    const second = await live(database)
    await stack.pooled(2)
    await second.dispose()
    let signed = 0
    const count: Power.Around = (step, effect) =>
      Effect.suspend(() => {
        if (step === "record") signed += 1
        return effect
      })
    let looks = 0
    const life = await live(backup, {
      wrapJournal: (journal) => Power.wrap(journal, count),
      onExchange: (methods) => {
        if (methods.includes("eth_getTransactionCount")) looks += 1
      }
    })
    await expect.poll(() => looks, { timeout: 20_000 }).toBeGreaterThan(1)
    expect(signed).toBe(0)
    await stack.automine(true)
    await stack.mine()
    expect(await answersOf(life, requestIds)).toMatchObject([{ status: 1 }, { status: 1 }])
    expect(signed).toBe(0)
    await once(own, other)
  })

  it("via a bundler: an op under another hash and an op of another request are not sent again", async () => {
    const [id, other] = [hashOf("at a bundler"), hashOf("other at a bundler")]
    const bundler = await startStandIn()
    try {
      bundler.attach(stack.provider, keyOf(8))
      const profile = { remoteBundler: Redacted.make(bundler.url) }
      // The backup knows all nonces of the signer: they do not show the bundler's submissions.
      const first = await accepted(directly(hashOf("before the bundler")))
      await executed(first.database, first.requestIds)
      const unsent: Power.Spot = { step: "handOver", moment: "before" }
      const work = [hit("one", id), hit("two", other)]
      const { backup, database, requestIds } = await stoppedAt(unsent, first.database, work, profile)
      await stack.mine()
      const before = await executed(database, requestIds, profile)
      const sent = bundler.sent.length
      const after = await answersOf(await live(backup, { profile }), requestIds)
      expect(after).toMatchObject(before.map(({ txHashes }) => ({ status: 1, txHashes })))
      expect(bundler.sent).toHaveLength(sent)
      await once(id, other)
    } finally {
      await bundler.stop()
    }
  })

  it.each([
    ["cannot be connected to", "connect", "same"],
    ["does not reply", "answer", "same"],
    ["is there again after another stop of the service", "connect", "next"]
  ])(
    "a request whose node %s is compared when that is back, whatever is signed meanwhile",
    async (kind, fails, lives) => {
      const ids = ["silent", "known beside", "new beside"].map((part) => hashOf(`${part} ${kind}`))
      const [id = "", known = "", fresh = ""] = ids
      const { backup, database, requestIds } = await accepted(
        directly(id, { rpc: `${stack.settings.rpc}/?own` }),
        directly(known)
      )
      const [before] = await executed(database, requestIds)
      let isSilent = true
      const options: LifeOptions = {
        wrapChain: ({ connect }) => ({
          connect: (url, by) => {
            if (!url.includes("?own")) return connect(url, by)
            const silence = new ChainRpcError({ reason: "unreachable", origin: url, message: "it is silent" })
            const around: Power.Around = (_, effect) =>
              Effect.suspend(() =>
                isSilent && fails === "answer" ? (Effect.fail(silence) as unknown as typeof effect) : effect
              )
            return Effect.suspend(() => (isSilent && fails === "connect" ? silence : connect(url, by))).pipe(
              Effect.map((client) => Power.wrap(client, around))
            )
          }
        })
      }
      const first = await live(backup, options)
      expect(await answersOf(first, requestIds.slice(1))).toMatchObject([{ status: 1 }])
      // It takes the nonce after the ones unknown to the backup.
      expect(await first.runPromise(hit("one", fresh)(stack.caller()))).toMatchObject({ status: 1 })
      if (lives === "next") await first.dispose()
      isSilent = false
      const life = lives === "next" ? await live(backup, options) : first
      const [after] = await answersOf(life, requestIds.slice(0, 1))
      expect(after).toMatchObject({ status: 1, txHash: before.txHash })
      await once(...ids)
    }
  )

  it("only foreign transactions have used the key: the work resumes without an operator", async () => {
    const [op, direct] = [hashOf("after others"), hashOf("direct after others")]
    const { backup, requestIds } = await accepted(hit("one", op), directly(direct))
    await foreign()
    await stack.mine()
    await foreign()
    expect(await answersOf(await live(backup), requestIds)).toMatchObject([{ status: 1 }, { status: 1 }])
    await once(op, direct)
  })
})

/** The wallet of several owners counts the id: by the first owner's transaction, or by the second's. */
const ofOwners =
  (id: string, isSecond = false): Work =>
  (caller) => {
    const { salt: _, ...rest } = stack.hit("", id)
    const [first, second] = [stack.settings.signer, Journey.second]
    const settings = isSecond ? { signer: second, cosigners: [first] } : { cosigners: [second] }
    return stack.execute([{ ...rest, wallet: multisig, walletCustody: 0 as const }], settings, caller)
  }

/** The second owner uses the next nonce of that wallet. */
const usedNonce = async (id: string) => {
  const life = stack.begin()
  await life.runPromise(ofOwners(hashOf(`${id} before`), true)(stack.caller()))
  await life.dispose()
}

/** The same call of the wallet was made under a nonce that the database does not connect with the request. */
const doneUnderAnotherNonce = async (id: string) => {
  const { backup, database, requestIds } = await acceptedIn(await known(id, {}), ofOwners(id))
  // The key's next nonce is used before the request resumes.
  await usedNonce(id)
  await stack.mine()
  await executed(database, requestIds)
  await once(id)
  return { backup, requestId: requestIds[0] ?? "" }
}

describe("work that may have been done already", { timeout: 60_000 }, () => {
  it("is held, also by the next life, until the operator releases it", async () => {
    const id = hashOf("released")
    const { backup, requestId } = await doneUnderAnotherNonce(id)
    const life = await live(backup)
    expect(await heldOf(life, requestId)).toContain("the same call")
    const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(stack.signer.address) }
    const { knownTo } = await life.runPromise(RecoveryJournal)
    // The next life reads the nonces again when this one ends before it has recorded them.
    await expect.poll(() => life.runPromise(knownTo(lane))).toBe(BigInt(await stack.nonce()))
    await life.dispose()
    // Ops that the database has lost may land for ten minutes.
    const later = "update lanes set proven_at = proven_at - 600000"
    expect(await Finished.finished("sqlite3", [backup, later], tmpdir())).toMatchObject({ status: 0 })
    const next = await live(backup)
    const recovery = await next.runPromise(RecoveryJournal)
    expect(await stack.requestOf(next, requestId)).toMatchObject({ outcome: null })
    expect(await next.runPromise(recovery.unhold(requestId))).toBe(true)
    expect((await stack.answerOf(next, requestId)).answer).toMatchObject({ status: 1 })
    expect(await stack.counts(id)).toEqual([2])
  })

  it.each([
    [
      "as its window had begun",
      1,
      async (id: string) => {
        // A loaded machine may not have accepted it yet.
        const validAfter = (await stack.now()) + 8
        return [stack.hit("two", id, { validAfter })]
      }
    ],
    [
      "as a later slice of a large request",
      2,
      async (id: string) =>
        Array.from({ length: 257 }, (_, at) => stack.hit("two", at === 256 ? id : hashOf(`${id} ${at}`)))
    ]
  ])("is held where it got its nonce since, %s", async (name, nth, operations) => {
    const id = hashOf(name)
    const work = await operations(id)
    const { backup, database, requestIds } = await stoppedAt(
      { step: "openElements", moment: "before", nth },
      await known(id, {}),
      [(caller) => stack.execute(work, {}, { ...caller, isAsynchronous: true })]
    )
    await stack.later(10)
    await executed(database, requestIds)
    await once(id)
    const life = await live(backup)
    expect(await heldOf(life, requestIds[0] ?? "")).toContain("the same call")
    await once(id)
  })

  it("is held once the transaction waiting in the pool is mined", async () => {
    const id = hashOf("held from the pool")
    const { backup, database, requestIds } = await acceptedIn(await known(id, {}), ofOwners(id))
    const [requestId = ""] = requestIds
    await usedNonce(id)
    await stack.automine(false)
    const second = await live(database)
    await stack.pooled(1)
    await second.dispose()
    let looks = 0
    const life = await live(backup, {
      onExchange: (methods) => {
        if (methods.includes("eth_getTransactionCount")) looks += 1
      }
    })
    await expect.poll(() => looks, { timeout: 20_000 }).toBeGreaterThan(1)
    expect(await stack.requestOf(life, requestId)).toMatchObject({ held: null, outcome: null, txHashes: [] })
    await stack.automine(true)
    await stack.mine()
    expect(await heldOf(life, requestId)).toContain("the same call")
    await once(id)
  })

  it("is held though it was on its way, when another nonce of its wallet has done the same", async () => {
    const id = hashOf("held after it was signed")
    const { backup, database, requestIds } = await signedIn(await known(id, {}), ofOwners(id))
    await foreign()
    await usedNonce(id)
    await executed(database, requestIds)
    await once(id)
    expect(await heldOf(await live(backup), requestIds[0] ?? "")).toContain("the same call")
    await once(id)
  })

  it("is held until the operator drops it, and its answer says so", async () => {
    const id = hashOf("dropped")
    const { backup, requestId } = await doneUnderAnotherNonce(id)
    const life = await live(backup)
    await heldOf(life, requestId)
    const journal = await life.runPromise(RequestJournal)
    const cancelled = (code: "request_cancelled" | "request_dropped") =>
      life.runPromise(Cancellations.cancel(journal, requestId, code, { onlyUnsigned: false }))
    expect(await cancelled("request_cancelled")).toBe("kept")
    expect(await cancelled("request_dropped")).toBe("final")
    expect(await stack.requestOf(life, requestId)).toMatchObject({
      cancelled: "request_dropped",
      held: null,
      outcome: expect.stringContaining("request_dropped")
    })
    await once(id)
  })

  it("is held when the node hides part of the chain", async () => {
    const [op, direct] = [hashOf("hidden op"), hashOf("hidden direct")]
    const before = await known("hidden", {})
    const { backup, database, requestIds } = await acceptedIn(before, hit("one", op), directly(direct))
    const [first = "", second = ""] = requestIds
    await stack.mine()
    await executed(database, requestIds)
    const life = await live(backup, {
      wrapChain: ({ connect }) => ({
        connect: (url, by) =>
          Effect.map(connect(url, by), (client) => ({
            ...client,
            transaction: () => Effect.succeed(null),
            transactionsIn: () =>
              new ChainRpcError({ reason: "rejected", origin: client.origin, message: "pruned" })
          }))
      })
    })
    expect(await heldOf(life, first)).toContain("cannot be read")
    expect(await heldOf(life, second)).toContain("cannot be read")
    await once(op, direct)
  })
})

describe("a database that becomes an older one under its running service", { timeout: 60_000 }, () => {
  it("is no longer used: no transaction is signed until the service has restarted and compared it", async () => {
    const id = hashOf("under a running service")
    const { backup, database, requestIds } = await accepted(directly(id))
    const [requestId = ""] = requestIds
    await stack.automine(false)
    const life = await live(database)
    await stack.pooled(1)
    const restored = await Finished.finished("sqlite3", [database, `.restore '${backup}'`], tmpdir())
    expect(restored).toMatchObject({ status: 0 })
    const requestJournal = await life.runPromise(RequestJournal)
    await expect
      .poll(() => life.runPromise(Effect.result(requestJournal.request(requestId))), { timeout: 20_000 })
      .toMatchObject({ _tag: "Failure", failure: { message: expect.stringContaining("older") } })
    expect(await stack.pool()).toHaveLength(1)
    const refused = await life.runPromise(Effect.flip(hit("one", hashOf("later"))(stack.caller())))
    expect(refused).toMatchObject({ code: "unavailable" })
    await life.dispose()
    await stack.automine(true)
    await stack.mine()
    expect(await answersOf(await live(database), requestIds)).toMatchObject([{ status: 1 }])
    await once(id)
  })
})

/** The last test: the node keeps no state from before this many blocks, and its clock is ahead after them. */
describe("a database from over a thousand blocks ago", { timeout: 60_000 }, () => {
  it("finds an op signed by a passkey and does not repeat it", async () => {
    const id = hashOf("passkey")
    const { entryPoint, rpc } = stack.settings
    const settings = { rpc, entryPoint }
    const { results } = await stack.ask(
      PasskeyHash.run(stack.caller(), {
        operations: [{ ...stack.hit("phone", id), walletCustody: 5 }],
        settings
      })
    )
    const operations = results.map((op) => ({
      encodedUserOp: Hex.unsafe(String(op.encodedUserOp)),
      userOpHash: Hex.unsafe32(String(op.userOpHash)),
      validationData: phone.get(String(op.signingHash))
    }))
    const { backup, database, requestIds } = await accepted((caller) =>
      ExecutePasskey.run(caller, { operations, settings })
    )
    await stack.mine()
    const [before] = await executed(database, requestIds)
    await stack.provider.send("anvil_mine", ["0x44c"])
    const used = () => stack.provider.getTransactionCount(keyOf(2).address)
    const nonce = await used()
    const [after] = await answersOf(await live(backup), requestIds)
    expect(after).toMatchObject({ status: 1, txHash: before.txHash })
    await once(id)
    expect(await used()).toBe(nonce)
  })
})
