import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { HDNodeWallet } from "ethers"
import { expect, it } from "vitest"
import * as Bodies from "../../../src/application/endpoints/Bodies.js"
import * as ExecuteEncoded from "../../../src/application/endpoints/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as CreateWallets from "../../../src/application/endpoints/wallets/CreateWallets.js"
import type { Failure } from "../../../src/application/failures/Failure.js"
import * as Intake from "../../../src/application/intake/Intake.js"
import { type ChainClient, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import type {
  Acceptance,
  AcceptanceResult,
  PreparedOp
} from "../../../src/application/ports/journal/Records.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { KillSwitches } from "../../../src/application/ports/KillSwitches.js"
import type { Offer } from "../../../src/application/prepare/Offer.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as PrepareCalls from "../../../src/application/prepare/PrepareCalls.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as LensBatch from "../../../src/domain/erc4337/gas/LensBatch.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import * as Deployment from "../../../src/domain/wallet/Deployment.js"
import * as Make from "../../support/journal/Make.js"
import { Address, type HandedOut, keyOf, type Ports, useStack } from "../../support/stack/Stack.js"
import { mined } from "../../support/suite/Receipt.js"
import * as Time from "../../support/Time.js"

/** Requests that arrive together, from their bodies to the journal's acceptances. */

const salts = Array.from({ length: 6 }, (_, at) => `intake ${at}`)

let exchanges: Array<ReadonlyArray<string>> = []
const stack = useStack({ onExchange: (methods) => void exchanges.push(methods) }, (stack) =>
  stack.create(...salts)
)

/** A journal with acceptances only; `judge` returns the result of each, by default `accepted`. */
const journalOf = (judge: (acceptance: Acceptance) => AcceptanceResult = () => ({ _tag: "accepted" })) => {
  const lists: Array<ReadonlyArray<Acceptance>> = []
  const accepted: Array<Acceptance> = []
  const declined: Array<string> = []
  let failure: JournalError | null = null
  const keyed = (accountId: string, endpoint: string, key: string) =>
    accepted.find(
      (each) => each.accountId === accountId && each.endpoint === endpoint && each.idempotency?.key === key
    )
  const journal: Pick<RequestJournal["Service"], "accept" | "decline" | "read"> = {
    read: ({ idempotency, spaces }) =>
      Effect.sync(() => ({
        known: idempotency.map(({ accountId, endpoint, key }) => {
          const found = keyed(accountId, endpoint, key)
          return found?.idempotency == null
            ? null
            : { requestId: found.requestId, bodyHash: found.idempotency.bodyHash }
        }),
        spaces: spaces.map(({ wallet }) => ({
          keys: new Set(
            accepted.flatMap(({ ops }) =>
              ops.filter(({ space }) => space.wallet === wallet).map((op) => op.nonceKey)
            )
          ),
          held: 0n
        }))
      })),
    accept: (list) =>
      Effect.suspend(() => {
        lists.push(list)
        if (failure !== null) return failure
        return Effect.succeed(
          list.map((each) => {
            const result = judge(each)
            if (result._tag === "accepted") accepted.push(each)
            return result
          })
        )
      }),
    decline: (requestId) =>
      Effect.suspend(() => {
        declined.push(requestId)
        // At first it gives no reply at all.
        return declined.length === 1
          ? new JournalError({ message: "the disk is full" })
          : Effect.succeed(null)
      })
  }
  return {
    accepted,
    declined,
    lists,
    fail: (isUndone?: true) => {
      failure = new JournalError({ message: "the disk is full", ...(isUndone && { isUndone }) })
    },
    free: () => void accepted.splice(0),
    ops: () => accepted.flatMap(({ ops }) => ops),
    journal: journal as RequestJournal["Service"]
  }
}

const unposted = { findOp: () => Effect.succeed(null) }

const begin = (journal: RequestJournal["Service"], undone = Effect.void) =>
  stack.runtime.runPromise(
    Intake.make({
      requestJournal: journal,
      opJournal: unposted,
      enterWaiting: () => Effect.void,
      wakeLane: () => Effect.void,
      broadcastUndone: () => undone
    })
  )

const offered = (operations: ReadonlyArray<Operation>, by = stack.caller()) => {
  const request = { operations, settings: stack.settings }
  const body = JSON.stringify(Schema.encodeSync(ExecuteOperations.Request)(request))
  return ExecuteOperations.kind.offerOf(by, request, body)
}

/** Concurrent requests of these operations; each with its `by` where given. */
const takeAll = (
  intake: Intake.Intake,
  requests: ReadonlyArray<ReadonlyArray<Operation>>,
  by: (at: number) => Caller = stack.caller
) =>
  stack.runtime.runPromise(
    Effect.forEach(
      requests,
      (operations, at) => Effect.exit(Effect.flatMap(offered(operations, by(at)), intake.take)),
      { concurrency: "unbounded" }
    )
  )

const codeOf = (exit: Exit.Exit<Intake.Taken, Failure> | undefined) =>
  exit !== undefined && Exit.isFailure(exit)
    ? Option.getOrNull(Cause.findErrorOption(exit.cause))?.code
    : undefined

const tagOf = (exit: Exit.Exit<Intake.Taken, unknown>) => (Exit.isSuccess(exit) ? exit.value._tag : "failed")

const sign = (key: HDNodeWallet, digest: string) => Hex.unsafe(key.signingKey.sign(digest).serialized)

/** A creation as the deployer signs it: first the authorisation in its initCode, which its hash covers. */
const authorised = (
  op: PreparedOp & { readonly unsigned: UserOperation.UserOperation },
  bundler: Address.Address
) => {
  const deployer = keyOf(3)
  const { deployment, factory } = Result.getOrThrow(Deployment.parse(op.unsigned.initCode))
  const digest = Deployment.digest({ chainId: op.space.chainId, factory }, deployment, bundler)
  const authorization = Deployment.authorization(sign(deployer, digest), bundler)
  return { ...op.unsigned, initCode: Deployment.initCode(factory, deployment, authorization) }
}

/** The ops with their signatures, as a transaction of the signer carries them. */
const land = async (ops: ReadonlyArray<PreparedOp>) => {
  const signer = keyOf(1)
  const bundler = Address.unsafe(signer.address)
  const signed = ops.flatMap((op) => {
    if (op.kind === "direct" || op.window === null) return []
    if (op.proof !== null && typeof op.proof === "object" && "made" in op.proof) return [op.unsigned]
    const unsigned = op.proof === "deployer" ? authorised(op, bundler) : op.unsigned
    const hash = UserOperation.hash("v0.7", stack.settings.entryPoint, op.space.chainId, unsigned)
    expect([null, hash]).toContain(op.userOpHash)
    const conditions = { ...op.window, bundler }
    const proof = sign(op.proof === "deployer" ? keyOf(3) : signer, Conditions.signingHash(hash, conditions))
    return [{ ...unsigned, signature: Conditions.encodeSignature(conditions, proof) }]
  })
  return mined(
    await signer.connect(stack.provider).sendTransaction({
      to: stack.settings.entryPoint,
      data: UserOperation.handleOps("v0.7", signed, bundler)
    })
  )
}

const idOf = (n: number) => Make.word(0x1e_0000 + n)

it("requests that arrive together share one simulation and one acceptance, and can land", async () => {
  const { journal, lists, ops } = journalOf()
  const intake = await begin(journal)
  // The wallets' configurations are known from here on.
  await takeAll(
    intake,
    salts.map((salt, at) => [stack.hit(salt, idOf(at))])
  )
  lists.length = 0
  const before = ops().length
  exchanges = []
  const release = Time.hold()
  const exits = await takeAll(
    intake,
    salts.map((salt, at) => [stack.hit(salt, idOf(10 + at))])
  ).finally(release)
  expect(exits.map(tagOf)).toEqual(salts.map(() => "accepted"))
  expect(lists.map((list) => list.length)).toEqual([salts.length])
  expect(exchanges.length).toBe(1)
  await land(
    ops()
      .slice(before)
      .filter(({ sequence }) => sequence === 0n)
  )
  expect(await stack.counts(...salts.map((_, at) => idOf(10 + at)))).toEqual(salts.map(() => 1))
})

it("ops of one wallet share a nonce key in their order, across requests that are prepared together", async () => {
  const { journal, ops } = journalOf()
  const intake = await begin(journal)
  const salt = salts[0] ?? ""
  await takeAll(intake, [[stack.hit(salt, idOf(20)), stack.hit(salt, idOf(21))], [stack.hit(salt, idOf(22))]])
  const keys = new Set(ops().map(({ nonceKey }) => nonceKey))
  expect(keys.size).toBe(1)
  const [first = 0n] = ops().map(({ sequence }) => sequence)
  expect(ops().map(({ sequence }) => sequence - first)).toEqual([0n, 1n, 2n])
  await land(ops())
  expect(await stack.counts(idOf(20), idOf(21), idOf(22))).toEqual([1, 1, 1])
})

it("an invalid or reverting request blocks no other one's acceptance", async () => {
  const { accepted, journal } = journalOf()
  const intake = await begin(journal)
  const [one = "", other = "", third = ""] = salts
  const reverting: Operation = {
    ...stack.hit(other, idOf(31)),
    to: Address.unsafe(String(stack.reverter.target)),
    funcSignature: "fail()",
    funcParams: []
  }
  const exits = await takeAll(intake, [
    [stack.hit(one, idOf(30))],
    [reverting],
    [{ ...stack.hit(third, idOf(32)), walletCustody: 0, wallet: stack.predict(third), salt: "" }],
    [{ ...stack.hit("nobody's", idOf(33)) }]
  ])
  expect(exits.map(tagOf)).toEqual(["accepted", "refused", "accepted", "refused"])
  expect(accepted.length).toBe(2)
  const codes = exits.map((exit) =>
    Exit.isSuccess(exit) && exit.value._tag === "refused"
      ? [...exit.value.failed.values()].map(({ code }) => code)
      : []
  )
  expect(codes).toEqual([[], ["execution_failed"], [], ["wallet_not_deployed"]])
})

it("an operation that depends on a failed one fails with it, and independent ones are accepted", async () => {
  const { accepted, journal } = journalOf()
  const intake = await begin(journal)
  const [one = "", other = "", third = ""] = salts
  const reverting: Operation = {
    ...stack.hit(one, idOf(41)),
    to: Address.unsafe(String(stack.reverter.target)),
    funcSignature: "fail()",
    funcParams: []
  }
  await takeAll(intake, [
    [reverting, stack.hit(other, idOf(42), { dependsOn: 0 }), stack.hit(third, idOf(43))]
  ])
  expect(
    accepted.map(({ failed, ops }) => [failed.map(({ code }) => code), ops.map(({ index }) => index)])
  ).toEqual([[["execution_failed", "dependency_failed"], [2]]])
})

it("linked operations land together, and the dependent one does not land separately", async () => {
  const { journal, ops } = journalOf()
  const intake = await begin(journal)
  const [one = "", other = ""] = salts
  await takeAll(intake, [[stack.hit(one, idOf(51), { dependsOn: 1 }), stack.hit(other, idOf(50))]])
  expect(ops().map(({ dependsOn, index }) => [index, dependsOn])).toEqual([
    [1, []],
    [0, [1]]
  ])
  await land(ops())
  expect(await stack.counts(idOf(50), idOf(51))).toEqual([1, 1])
})

it("one idempotency key accepts one request and refuses another body", async () => {
  const { accepted, journal } = journalOf()
  const intake = await begin(journal)
  const [salt = ""] = salts
  const bodies = [1, 1, 2]
  const exits = await takeAll(
    intake,
    bodies.map((body) => [stack.hit(salt, idOf(60 + body))]),
    (at) => ({
      ...stack.caller(),
      idempotency: { key: "a key", bodyHash: Make.word(bodies[at] ?? 0) }
    })
  )
  expect(accepted.length).toBe(1)
  const ids = exits
    .slice(0, 2)
    .map((exit) => (Exit.isSuccess(exit) && exit.value._tag === "accepted" ? exit.value : null))
  expect(ids.map((taken) => taken?.requestId)).toEqual(
    accepted.flatMap(({ requestId }) => [requestId, requestId])
  )
  expect(ids.map((taken) => taken?.isKnown)).toEqual([false, true])
  expect(codeOf(exits[2])).toBe("idempotency_key_reused")
})

it("a request whose wallet has no nonce key left waits until one is released", async () => {
  const { accepted, free, journal } = journalOf()
  const intake = await begin(journal)
  const [salt = ""] = salts
  for (let at = 0; at < 16; at += 1) await takeAll(intake, [[stack.hit(salt, idOf(70 + at))]])
  expect(new Set(accepted.flatMap(({ ops }) => ops.map(({ nonceKey }) => nonceKey))).size).toBe(16)
  let isOver = false
  const late = takeAll(intake, [[stack.hit(salt, idOf(90))]]).then((exits) => {
    isOver = true
    return exits
  })
  await takeAll(intake, [[stack.hit(salts[1] ?? "", idOf(91))]])
  expect(isOver).toBe(false)
  const { context } = await stack.runtime.runPromise(offered([stack.hit(salt, idOf(92))]))
  free()
  await Effect.runPromise(intake.released({ chainId: context.chainId, signer: context.submitter }))
  expect((await late).map(tagOf)).toEqual(["accepted"])
})

it("a request that loses its nonce is prepared again under another one", async () => {
  let times = 0
  const { accepted, journal, lists } = journalOf(() => {
    times += 1
    return times === 1 ? { _tag: "nonceTaken", index: 0, isSettled: false } : { _tag: "accepted" }
  })
  const intake = await begin(journal)
  expect((await takeAll(intake, [[stack.hit(salts[0] ?? "", idOf(100))]])).map(tagOf)).toEqual(["accepted"])
  expect([lists.length, accepted.length]).toEqual([2, 1])
})

it("a request whose nonce a settled op has waits until that one is on the chain again", async () => {
  let isUndone = true
  const { journal, lists } = journalOf(() =>
    isUndone ? { _tag: "nonceTaken", index: 0, isSettled: true } : { _tag: "accepted" }
  )
  const offered = Effect.sync(() => {
    isUndone = false
  })
  const intake = await begin(journal, offered)
  expect((await takeAll(intake, [[stack.hit(salts[0] ?? "", idOf(105))]])).map(tagOf)).toEqual(["accepted"])
  expect(lists.length).toBe(2)
})

it("a commit whose answer is lost is decided by the journal", async () => {
  const { declined, fail, journal } = journalOf()
  const intake = await begin(journal)
  fail()
  const exits = await takeAll(intake, [[stack.hit(salts[0] ?? "", idOf(110))]])
  expect(exits.map(tagOf)).toEqual(["failed"])
  expect(declined.length).toBe(2)
  expect(codeOf(exits[0])).toBe("unavailable")
})

it("a request that the journal has certainly not accepted is refused without asking again", async () => {
  const { declined, fail, journal } = journalOf()
  const intake = await begin(journal)
  fail(true)
  const exits = await takeAll(intake, [[stack.hit(salts[0] ?? "", idOf(115))]])
  expect(codeOf(exits[0])).toBe("unavailable")
  expect(declined).toEqual([])
})

it("a stop refuses waiting and arriving requests", async () => {
  const { accepted, journal } = journalOf()
  const intake = await begin(journal)
  await Effect.runPromise(intake.stop)
  expect((await takeAll(intake, [[stack.hit(salts[0] ?? "", idOf(120))]])).map(tagOf)).toEqual(["failed"])
  expect(accepted).toEqual([])
})

it("an accepted op is prepared again under the nonce that it has", async () => {
  const { journal, ops } = journalOf()
  const intake = await begin(journal)
  const [salt = ""] = salts
  await takeAll(intake, [[stack.hit(salt, idOf(130))]])
  const [first] = ops()
  const again = await stack.runtime.runPromise(
    Effect.gen(function* () {
      const offer = yield* offered([stack.hit(salt, idOf(130))])
      const { batches } = yield* PrepareCalls.prepare({
        context: offer.context,
        batches: [{ ...offer, isAccepted: true }],
        nonceOf: () => ({ key: first?.nonceKey ?? 0n, sequence: (first?.sequence ?? 0n) + 5n })
      })
      return batches
    })
  )
  const [made] = again.map((each) => (Result.isSuccess(each) ? each.success.ops : []))
  expect(made?.map(({ nonceKey, sequence }) => [nonceKey, sequence])).toEqual([
    [first?.nonceKey, (first?.sequence ?? 0n) + 5n]
  ])
})

it("an accepted request is prepared again, under its nonces, from the journal's data", async () => {
  const { journal, ready } = await stack.runtime.runPromise(
    Effect.gen(function* () {
      const requestJournal = yield* RequestJournal
      const opJournal = yield* OpJournal
      const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(stack.signer.address) }
      return { journal: requestJournal, ready: Effect.orDie(opJournal.ready(lane, 100)) }
    })
  )
  const intake = await begin(journal)
  const [one = "", other = ""] = salts
  const exits = await takeAll(intake, [
    [stack.hit(one, idOf(160)), stack.hit(other, idOf(161), { dependsOn: 0 })],
    [stack.hit(one, idOf(162))]
  ])
  expect(exits.map(tagOf)).toEqual(["accepted", "accepted"])
  const rows = await stack.runtime.runPromise(ready)
  const nonces = new Map(rows.map((op) => [`${op.requestId} ${op.index}`, op]))
  const made = await stack.runtime.runPromise(
    Effect.gen(function* () {
      const bodies = yield* Effect.orDie(journal.bodies([...new Set(rows.map(({ requestId }) => requestId))]))
      const requests = yield* Effect.forEach(bodies, (body) => Bodies.read(body, BigInt(stack.anvil.chainId)))
      const [first] = requests
      if (first === undefined) return yield* Effect.die("nothing was accepted")
      expect(new Set(requests.map(({ context }) => context)).size).toBe(1)
      expect(first.context.digest).toBe(rows[0]?.contextDigest)
      expect(first.keys.map(({ address }) => address)).toEqual([stack.signer.address])
      return yield* PrepareCalls.prepare({
        context: first.context,
        batches: requests.map((request) => ({ ...request, isAccepted: true })),
        nonceOf: ({ index, requestId }) => {
          const op = nonces.get(`${requestId} ${index}`)
          return { key: op?.nonceKey ?? 0n, sequence: op?.sequence ?? null }
        }
      })
    })
  )
  const again = made.batches.flatMap((each) => (Result.isSuccess(each) ? each.success.ops : []))
  const places = (ops: ReadonlyArray<Pick<PreparedOp, "requestId" | "index" | "nonceKey" | "sequence">>) =>
    ops
      .map(({ index, nonceKey, requestId, sequence }) => `${requestId} ${index} ${nonceKey} ${sequence}`)
      .toSorted()
  expect(places(again)).toEqual(places(rows))
  await land(again)
  expect(await stack.counts(idOf(160), idOf(161), idOf(162))).toEqual([1, 1, 1])
})

const posted = (ops: ReadonlyArray<HandedOut>, isProven: boolean) => {
  const operations = ops.map(({ encodedUserOp, signingHash, userOpHash }) => ({
    encodedUserOp: Hex.unsafe(encodedUserOp),
    userOpHash: Hex.unsafe32(userOpHash),
    walletCustody: 1 as const,
    ...(isProven && { signature: sign(keyOf(1), signingHash) })
  }))
  const by = stack.caller()
  return ExecuteEncoded.kind.offerOf(by, { operations, settings: stack.settings }, "{}")
}
const takeOne = <R extends Ports>(intake: Intake.Intake, offer: Effect.Effect<Offer, Failure, R>) =>
  stack.runtime.runPromise(Effect.exit(Effect.flatMap(offer, intake.take)))

it.each([
  ["the proof that came with it", true],
  ["one by the keys of the settings", false]
])("an issued op continues unchanged with %s", async (_, isProven) => {
  const { accepted, journal, ops } = journalOf()
  const intake = await begin(journal)
  const id = idOf(isProven ? 140 : 141)
  const { userOps } = await stack.estimate([stack.hit(salts[2] ?? "", id)])
  expect(tagOf(await takeOne(intake, posted(userOps, isProven)))).toBe("accepted")
  expect(ops().map(({ kind, userOpHash }) => [kind, userOpHash])).toEqual([["given", userOps[0]?.userOpHash]])
  await land(ops())
  expect(await stack.counts(id)).toEqual([1])

  // It has landed.
  expect(await takeOne(intake, posted(userOps, true))).toMatchObject({
    value: { _tag: "refused", existing: [0] }
  })
  expect(accepted.length).toBe(1)
})

it("an issued op with a proof other than its wallet's is refused", async () => {
  const { accepted, journal } = journalOf()
  const intake = await begin(journal)
  const { userOps } = await stack.estimate([stack.hit(salts[2] ?? "", idOf(150))])
  const wrong = userOps.map((op) => ({ ...op, signingHash: idOf(151) }))
  const exit = await takeOne(intake, posted(wrong, true))
  expect([tagOf(exit), accepted.length]).toEqual(["refused", 0])
})

const created = (names: ReadonlyArray<string>) =>
  CreateWallets.kind.offerOf(
    stack.caller(),
    { accounts: names.map((salt) => ({ salt, walletCustody: 1 as const })), settings: stack.settings },
    "{}"
  )

it("wallets are deployed by ops that the deployer signs once they are accepted", async () => {
  const { accepted, journal, ops } = journalOf()
  const intake = await begin(journal)
  const names = ["a wallet to be", "another one to be"]
  for (const name of names) await stack.fund(stack.predict(name), 10n ** 18n)
  expect(tagOf(await takeOne(intake, created([...names, salts[0] ?? ""])))).toBe("accepted")
  expect(accepted.map(({ deployments, note }) => [deployments.length, note])).toEqual([
    [2, JSON.stringify({ existing: [2] })]
  ])
  await land(ops())
  for (const name of names) expect(await stack.provider.getCode(stack.predict(name))).not.toBe("0x")

  const again = await takeOne(intake, created(names))
  expect(Exit.isSuccess(again) && again.value).toEqual({
    _tag: "refused",
    failed: new Map(),
    existing: [0, 1]
  })
})

it("a request whose windows have not begun is accepted unopened for an asynchronous caller, and refused for a waiting one", async () => {
  const { accepted, journal } = journalOf()
  const intake = await begin(journal)
  const [one = "", other = ""] = salts
  const validAfter = (await stack.now()) + 3_600
  const operations = [stack.hit(one, idOf(170), { validAfter }), stack.hit(other, idOf(171))]
  const patient = { ...stack.caller(), isAsynchronous: true }
  const exits = await takeAll(intake, [operations, [operations[0] ?? stack.hit(one, idOf(170))]], (at) =>
    at === 0 ? patient : stack.caller()
  )
  expect(exits.map(tagOf)).toEqual(["accepted", "refused"])
  expect(
    accepted.map(({ ops, schedule, unopened }) => [
      ops.map(({ index }) => index),
      unopened,
      schedule?.notBefore
    ])
  ).toEqual([[[1], 1, validAfter]])
})

it("an element with an impossible window has failed, and a waiting one keeps its time", async () => {
  const { accepted, journal } = journalOf()
  const intake = await begin(journal)
  const validAfter = (await stack.now()) + 3_600
  const operations = [
    stack.hit("nobody's", idOf(173), { validAfter }),
    stack.hit(salts[0] ?? "", idOf(174), { validAfter })
  ]
  await takeAll(intake, [operations], () => ({ ...stack.caller(), isAsynchronous: true }))
  expect(
    accepted.map(({ failed, schedule, unopened }) => [
      failed.map(({ index }) => index),
      unopened,
      schedule?.notBefore
    ])
  ).toEqual([[[0], 1, validAfter]])
})

it("a large request is accepted whole, before any measurement", async () => {
  const { accepted, journal } = journalOf()
  const intake = await begin(journal)
  const [salt = ""] = salts
  const many = Array.from({ length: 257 }, (_, at) => stack.hit(salt, idOf(1_000 + at)))
  const unheeded = () => ({ ...stack.caller(), isAsynchronous: true })
  const exits = await takeAll(intake, [many, [...many.slice(1), stack.hit("nobody's", idOf(172))]], unheeded)
  expect(exits.map(tagOf)).toEqual(["accepted", "failed"])
  expect(codeOf(exits[1])).toBe("wallet_not_deployed")
  expect(
    accepted.map(({ elements, ops, schedule, unopened }) => [elements, ops.length, unopened, schedule])
  ).toEqual([[257, 0, 257, null]])
})

it("requests with the same settings share their context, whatever their definitions", async () => {
  const [operation] = [stack.hit(salts[0] ?? "", idOf(180))]
  const contextWith = (more: object) =>
    stack.runtime.runPromise(
      Effect.map(
        ExecuteOperations.kind.offerOf(
          stack.caller(),
          { operations: [operation], settings: { ...stack.settings, ...more } },
          "{}"
        ),
        ({ context }) => context
      )
    )
  const first = await contextWith({})
  expect(await contextWith({ useABI: ["error Own()"] })).toBe(first)
  const other = await contextWith({ validator: Address.unsafe(stack.suite.validator) })
  expect(other).not.toBe(first)
  expect(other.digest).not.toBe(first.digest)
})

it("a request by a key that the operator has paused is refused before any query", async () => {
  const { accepted, journal } = journalOf()
  const intake = await begin(journal)
  const [salt = ""] = salts
  const paused = { isPaused: () => Effect.succeed(true) }
  const exit = await stack.runtime.runPromise(
    Effect.exit(Effect.flatMap(offered([stack.hit(salt, idOf(181))]), intake.take)).pipe(
      Effect.provideService(KillSwitches, paused)
    )
  )
  expect([tagOf(exit), codeOf(exit), accepted.length]).toEqual(["failed", "writes_paused", 0])
})

it("a node that refuses a call with many simulations gets smaller ones, and refuses none of their requests", async () => {
  const selector = LensBatch.encode([]).slice(0, 10)
  const sizes: Array<number> = []
  const clients = new Map<ChainClient, ChainClient>()
  const wrapped = (chain: ChainClient): ChainClient => {
    const known = clients.get(chain)
    if (known !== undefined) return known
    const own: ChainClient = {
      ...chain,
      call: (call, overrides, at) => {
        const data = call.data
        if (!data.startsWith(selector)) return chain.call(call, overrides, at)
        const { count } = Words.readArray(Words.read(Hex.unsafe(`0x${data.slice(10)}`)), 0)
        sizes.push(count)
        return count > 2
          ? Effect.fail(new ChainRpcError({ reason: "rejected", origin: chain.origin, message: "too large" }))
          : chain.call(call, overrides, at)
      }
    }
    clients.set(chain, own)
    return own
  }
  const life = stack.begin({
    wrapChain: (nodes) => ({
      ...nodes,
      connect: (url, owner) => Effect.map(nodes.connect(url, owner), wrapped)
    })
  })
  const { accepted, journal } = journalOf()
  const taken = await life.runPromise(
    Effect.gen(function* () {
      const intake = yield* Intake.make({
        requestJournal: journal,
        opJournal: unposted,
        enterWaiting: () => Effect.void,
        wakeLane: () => Effect.void,
        broadcastUndone: () => Effect.void
      })
      return yield* Effect.forEach(
        salts.slice(0, 5),
        (salt, at) => Effect.flatMap(offered([stack.hit(salt, idOf(190 + at))]), intake.take),
        { concurrency: "unbounded" }
      )
    })
  )
  await life.dispose()
  expect(taken.map(({ _tag }) => _tag)).toEqual(Array.from({ length: 5 }, () => "accepted"))
  expect(accepted.length).toBe(5)
  expect(sizes.filter((size) => size > 2).toSorted()).toEqual([3, 5])
})
