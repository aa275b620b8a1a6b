import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { HDNodeWallet, id as hashOf, Wallet } from "ethers"
import { type StandIn, startStandIn } from "../../support/bundler/StandIn.js"
import * as Actors from "./Actors.js"
import type { Build } from "./Build.js"
import { ask, type Question } from "./Client.js"
import * as FaultProxy from "./FaultProxy.js"
import * as Impulses from "./Impulses.js"
import * as Judge from "./Judge.js"
import * as Random from "./Random.js"
import * as Receiver from "./Receiver.js"
import type * as Scenario from "./Scenario.js"
import * as Store from "./Store.js"
import * as Supervisor from "./Supervisor.js"
import * as Workload from "./Workload.js"
import * as World from "./World.js"

export interface Report {
  readonly seed: number
  readonly scenario: Scenario.Scenario
  readonly verdict: Judge.Verdict
  /** Pieces of work, and the service's word on them. */
  readonly works: Readonly<Record<Workload.Said, number>>
  /** Work that should succeed and was refused: not a breach, but undesired. */
  readonly refused: ReadonlyArray<string>
  readonly faults: ReadonlyMap<string, number>
  readonly events: ReadonlyMap<string, number>
  /** Messages that webhooks were sent, repeats included. */
  readonly messages: number
  readonly deaths: ReadonlyArray<string>
  readonly restarts: number
  readonly millis: number
  readonly met: ReadonlyArray<string>
  readonly log: string
}

/** Longest time for all work to settle after the last disturbance. */
const quietMillis = 120_000

/** Longest storm with the service listening, when some clients lack their answers. */
const overtimeMillis = 6_000

const ether = 10n ** 18n

const until = (began: number, at: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.max(0, began + at - Date.now())))

/**
 * Runs a scenario on a world: wallets first, then the storm, then a quiet time when all work must settle. `sabotage`
 * may spoil the result before the verdict, to test the verdict.
 */
export const run = async (
  world: World.World,
  build: Build,
  scenario: Scenario.Scenario,
  sabotage: (works: ReadonlyArray<Workload.Work>) => Promise<void> = async () => undefined
): Promise<Report> => {
  const began = Date.now()
  const { seed } = scenario
  const folder = mkdtempSync(join(build.folder, `seed-${seed}-`))
  const signers = Array.from(
    { length: scenario.signers },
    (_, place) => new Wallet(hashOf(`signer ${seed} ${place}`), world.provider)
  )
  const tenants = await Promise.all(signers.map((_, place) => World.tenant(`tenant-${place}`)))
  for (const { address } of signers)
    await world.send("anvil_setBalance", address, `0x${(1_000n * ether).toString(16)}`)
  /** Of the callers, and of the operator: the same one, until the operator's is replaced. */
  const node = await FaultProxy.start(world.chain.url)
  const nodes = [node]
  const bundler = scenario.remote ? await bundlerOf(world, seed) : null
  const store = await Store.make(folder, scenario.store === "postgres" ? await world.postgres() : null)
  const config = join(folder, "castellan.json")
  const configure = (nodeUrl: string) =>
    writeFileSync(
      config,
      World.configFile(world, {
        nodeUrl,
        confirmations: scenario.confirmations,
        settledDepth: scenario.settledDepth,
        bumpAfterMillis: scenario.bumpAfterMillis,
        receiptTimeoutMillis: scenario.receiptTimeoutMillis,
        tenants,
        signers: signers.map(({ privateKey }, place) => ({
          tenants: tenants.slice(place, place + 1),
          privateKey
        })),
        database: store.address,
        ...(bundler !== null && { remoteBundler: bundler.url })
      })
    )
  const operators = scenario.nodeReplacedAt === null ? node : await FaultProxy.start(world.chain.url)
  if (operators !== node) nodes.push(operators)
  configure(operators.url)
  const process = (kills: Scenario.Scenario["kills"]) =>
    Supervisor.start({ build, folder, config, kills, wasAway: store.wasAway })
  const receiver = await Receiver.start(seed)
  const supervisor = Supervisor.fleet(
    [process(scenario.kills), ...scenario.others.map(process)],
    Random.make(`which process ${seed}`)
  )
  const gate = hashOf(`gate ${seed}`)
  const actors = Actors.make(world, signers, gate)
  let calmSince: number | null = null
  const calm = () => calmSince !== null
  const deadline = () => (calmSince ?? Date.now()) + quietMillis

  try {
    const salts = Array.from({ length: scenario.wallets }, (_, wallet) => `old ${seed} ${wallet}`)
    const newSalts = scenario.requests.flatMap((plan, index) => Workload.saltsOf(scenario, plan, index))
    const addresses = await predict(world, supervisor, tenants, [...salts, ...newSalts])
    for (const address of addresses.values())
      await world.send("anvil_setBalance", address, `0x${(10n * ether).toString(16)}`)
    if (scenario.settledDepth > 1) await actors.mine({ mode: "steady", millis: 50 })
    for (const { key } of tenants)
      await insist(supervisor, {
        path: "/webhooks",
        apiKey: key,
        key: null,
        patience: 20_000,
        body: { url: receiver.url }
      })
    await Promise.all(
      signers.map((_, signer) => create(scenario, node.url, supervisor, tenants, salts, signer))
    )
    await actors.mine({ mode: "automine" })
    for (let block = 0; block < 4; block += 1) await world.send("evm_mine")
    await actors.mine(scenario.mining)

    const setting: Workload.Setting = {
      scenario,
      world,
      receiver,
      store,
      supervisor,
      nodeUrl: node.url,
      tenants,
      salts,
      newcomers: addresses,
      gate,
      calm,
      deadline
    }
    const storm = Date.now()
    node.play(scenario.script, supervisor.onSend)
    supervisor.arm()
    receiver.storm()
    const clients = scenario.requests.map(async (plan, index) => {
      await until(storm, plan.at)
      return Workload.run(setting, plan, index)
    })
    const outcomes = Promise.all(clients)
    outcomes.catch(() => undefined)
    const impulses = Impulses.make(setting)
    const impatience = Promise.all(
      scenario.impulses.map(async (impulse, index) => {
        await until(storm, impulse.at)
        await impulses.play(impulse, index)
      })
    )
    impatience.catch(() => undefined)
    const troubles: Array<string> = []
    const tried = (name: string, act: () => Promise<void>) =>
      act().catch((error) => void troubles.push(`${name}: ${String(error).slice(0, 200)}`))
    const happened = new Map<string, number>()
    const happens = (name: string) => happened.set(name, (happened.get(name) ?? 0) + 1)
    /** Faults of the database and the operator's node, while the chain has its own events. */
    const misfortunes = Promise.all([
      ...scenario.outages.map(({ at, how, millis }) =>
        tried("database away", async () => {
          await until(storm, at)
          await store.away(how)
          await until(Date.now(), millis)
          await store.back()
          happens(`database ${how}`)
        })
      ),
      tried("node replaced", async () => {
        if (scenario.nodeReplacedAt === null) return
        await until(storm, scenario.nodeReplacedAt)
        operators.play(() => ({ kind: "cut before" }))
        const next = await FaultProxy.start(world.chain.url)
        nodes.push(next)
        configure(next.url)
        supervisor.bounce()
        happens("node replaced")
      })
    ])
    for (const event of scenario.events) {
      await until(storm, event.at)
      await tried(event.kind, () => actors.play(event))
    }
    await misfortunes
    await until(storm, scenario.stormMillis)
    // The remaining faults and kills hit the unfinished clients.
    await Promise.race([outcomes, supervisor.url().then(() => until(Date.now(), overtimeMillis))])
    node.calm()
    receiver.calm()
    supervisor.disarm()
    await actors.calm(needsBlocks(scenario))
    calmSince = Date.now()

    const done = await outcomes
    await impatience
    const works = done.flatMap(({ works }) => works)
    await sabotage(works)
    const verdict = await Judge.judge(
      setting,
      signers,
      works,
      done.flatMap(({ asked }) => asked),
      [...done.flatMap(({ violations }) => violations), ...troubles, ...(await impulses.judge())]
    )
    const said = (what: Workload.Said) => works.filter((work) => work.said === what).length
    return {
      seed,
      scenario,
      verdict,
      works: { success: said("success"), failure: said("failure"), nothing: said("nothing") },
      refused: works
        .filter((work) => work.said === "failure" && work.deed === "hit" && work.after === null)
        .map(({ why }) => why),
      faults: new Map([...node.faults(), ...receiver.faults()]),
      events: new Map([...actors.done(), ...happened, ...impulses.done()]),
      messages: receiver.arrivals().length,
      deaths: supervisor.deaths(),
      restarts: supervisor.restarts(),
      millis: Date.now() - began,
      met: done.flatMap(({ met }) => met),
      log: supervisor.log()
    }
  } finally {
    await store.back()
    await supervisor.stop()
    await Promise.all(nodes.map((one) => one.stop()))
    await bundler?.stop()
    await receiver.stop()
    await actors.leave()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** An external bundler with a separate EOA, which loses connections before and after its work. */
const bundlerOf = async (world: World.World, seed: number): Promise<StandIn> => {
  const bundler = await startStandIn()
  const eoa = HDNodeWallet.fromSeed(hashOf(`bundler ${seed}`))
  await world.send("anvil_setBalance", eoa.address, `0x${(1_000n * ether).toString(16)}`)
  bundler.attach(world.provider, eoa)
  const random = Random.make(`bundler ${seed}`)
  bundler.behave(() => ({
    does: random.pick(["submit", "submit", "submit", "submitAndCut", "cut"] as const)
  }))
  return bundler
}

/** On an automining chain only a transaction makes a block; after a fee spike none would come. */
const needsBlocks = ({ events, mining, settledDepth }: Scenario.Scenario): boolean =>
  mining.mode !== "interval" && (settledDepth > 1 || events.some(({ kind }) => kind === "fee spike"))

/** Repeats the question until a 200; starts again where a slow machine kept it waiting too long. */
const insist = async (supervisor: Supervisor.Supervisor, question: Question) => {
  const end = Date.now() + quietMillis
  const again = (key: string | null) =>
    ask(
      supervisor,
      { ...question, key },
      () => true,
      () => end
    )
  let trail = await again(question.key)
  for (let turn = 1; trail.answer?.status !== 200 && turn < 5; turn += 1)
    trail = await again(question.key === null ? null : `${question.key}-${turn}`)
  if (trail.answer?.status !== 200)
    throw new Error(`before the storm ${question.path} met ${JSON.stringify([trail.answer, trail.met])}`)
  return trail.answer
}

const predict = async (
  { chain }: World.World,
  supervisor: Supervisor.Supervisor,
  tenants: ReadonlyArray<World.Tenant>,
  salts: ReadonlyArray<string>
): Promise<ReadonlyMap<string, string>> => {
  const { body } = await insist(supervisor, {
    path: "/predict",
    apiKey: tenants[0]?.key ?? "",
    key: null,
    patience: 20_000,
    body: {
      accounts: salts.map((salt) => ({ salt, walletCustody: 1 })),
      settings: {
        factory: chain.suite.factory,
        beaconAdminAddress: chain.suite.beacon,
        beaconAdminCreationCode: World.creationCode
      }
    }
  })
  const predictions = body as unknown as ReadonlyArray<{ readonly salt: string; readonly wallet: string }>
  return new Map(predictions.map(({ salt, wallet }) => [salt, wallet]))
}

/** Creates the wallets of a signer: every n-th of the list. */
const create = async (
  { seed, signers, version }: Scenario.Scenario,
  rpc: string,
  supervisor: Supervisor.Supervisor,
  tenants: ReadonlyArray<World.Tenant>,
  salts: ReadonlyArray<string>,
  signer: number
): Promise<void> => {
  const own = salts.filter((_, wallet) => wallet % signers === signer)
  await insist(supervisor, {
    path: "/create",
    apiKey: tenants[signer]?.key ?? "",
    key: `${seed}-wallets-${signer}`,
    patience: 20_000,
    body: {
      accounts: own.map((salt) => ({ salt, walletCustody: 1 })),
      settings: { rpc, entryPoint: World.entryPoints[version], signer: World.signerRef(signer) }
    }
  })
}
