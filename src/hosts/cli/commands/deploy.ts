import { writeFileSync } from "node:fs"
import { resolve } from "node:path"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import {
  formatEther,
  formatUnits,
  getAddress,
  isAddress,
  type JsonRpcProvider,
  type Signer,
  Wallet
} from "ethers"
import { isHttpUrl, notHttpUrl } from "../../config/FileFields.js"
import * as Secrets from "../../config/Secrets.js"
import * as Deployment from "../deploy/Deployment.js"
import * as EntryPoints from "../deploy/EntryPoints.js"
import * as IntoConfig from "../deploy/IntoConfig.js"
import * as Plan from "../deploy/Plan.js"
import * as Bring from "../support/Bring.js"
import { chainOf, flag, help, json, Operator, optional, report, required, text } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Provider from "../support/Provider.js"
import * as Table from "../support/Table.js"

const textOf = (why: unknown): string => (why instanceof Error ? why.message : String(why))

/** Errors of nodes and of ethers quote the request and its URL: only the first line is shown. */
const attempt = <A>(what: string, run: () => Promise<A>): Effect.Effect<A, string> =>
  Effect.tryPromise({
    try: run,
    catch: (why) => `${what}: ${(textOf(why).split("\n")[0] ?? "").replace(/ \(.*$/, "").slice(0, 400)}`
  })

const addressOf = (option: string, text: string): Result.Result<string, string> =>
  isAddress(text) && /^0x/.test(text) && BigInt(text) !== 0n
    ? Result.succeed(getAddress(text))
    : Result.fail(`--${option}: expected an address, and not the zero address`)

/** The payer: a private key from the environment or a file, or the first unlocked account of a development node. */
const payerOf = (
  text: string,
  env: Secrets.Sources["env"],
  provider: JsonRpcProvider
): Effect.Effect<Signer, string> => {
  if (text === "node") return attempt("the node has no unlocked account", () => provider.getSigner(0))
  const [, kind, name] = /^(env|file):(.+)$/.exec(text) ?? []
  if (name === undefined) return Effect.fail("--payer: expected env:NAME, file:PATH or node")
  return Effect.fromResult(
    Result.flatMap(
      Secrets.read(kind === "env" ? { env: name } : { file: name }, {
        env,
        folder: process.cwd(),
        allowInline: false
      }),
      (secret) =>
        Result.try({
          try: () => new Wallet(Redacted.value(secret), provider),
          catch: () => "--payer: it is not a private key of 32 bytes in hex"
        })
    )
  )
}

const state = ({ how, present }: Plan.Step): string =>
  present ? "there" : how.kind === "left" ? (how.needed ? "MISSING" : "missing") : "to deploy"

interface Payer {
  readonly signer: Signer
  readonly address: string
  readonly balance: bigint
}

const shown = (plan: Plan.Plan, chainId: number, payer: Payer | null): string =>
  [
    `chain ${chainId}`,
    Table.align(
      plan.steps.map((step) => [
        `  ${step.name}`,
        step.address,
        state(step),
        step.gas === 0n ? "" : `about ${step.gas} gas`,
        step.value === 0n ? "" : `and ${formatEther(step.value)}`
      ])
    ),
    ...plan.steps.flatMap(({ how, name, present }) =>
      !present && how.kind === "left" ? [`  ${name}: ${how.why}`] : []
    ),
    `about ${plan.gas} gas at ${formatUnits(plan.gasPrice, "gwei")} gwei: at most ${formatEther(plan.cost)} of the chain's coin${plan.cost === 0n ? "" : ", without what a layer 2 takes for data on layer 1"}`,
    ...(payer === null ? [] : [`${payer.address} pays, and has ${formatEther(payer.balance)}`])
  ].join("\n")

const jsonOf = (plan: Plan.Plan) => ({
  gas: String(plan.gas),
  gasPrice: String(plan.gasPrice),
  cost: String(plan.cost),
  steps: plan.steps.map((step) => ({
    name: step.name,
    address: step.address,
    state: state(step).toLowerCase(),
    gas: String(step.gas),
    ...(step.how.kind === "left" && !step.present && { why: step.how.why })
  }))
})

const send = (
  payer: Payer | null,
  provider: JsonRpcProvider,
  plan: Plan.Plan,
  { ask, tell }: Operator["Service"],
  yes: boolean
) =>
  Effect.gen(function* () {
    if (plan.steps.every(({ how, present }) => present || how.kind === "left")) return
    if (payer === null) return yield* Effect.fail("--payer is required")
    if (payer.balance < plan.cost)
      return yield* Effect.fail(
        `${payer.address} has ${formatEther(payer.balance)}, and the plan costs up to ${formatEther(plan.cost)}`
      )
    if (!yes && !(yield* ask("deploy this?")))
      return yield* Effect.fail("not confirmed, nothing was sent; pass --yes to skip the prompt")
    yield* attempt("the deployment stopped; rerun the command to resume", () =>
      Deployment.run(payer.signer, provider, plan, ({ address, name }) =>
        Effect.runSync(tell(`${name} stands at ${address}`))
      )
    )
  })

const verify = (provider: JsonRpcProvider, plan: Plan.Plan, keys: Plan.DeploySpec["keys"]) =>
  Effect.gen(function* () {
    const { tell } = yield* Operator
    const found = yield* attempt("the deployed contracts cannot be read back", () =>
      Deployment.verify(provider, plan, keys)
    )
    for (const { name, notes } of found) for (const note of notes) yield* tell(`${name}: ${note}`)
    const wrong = found.flatMap(({ address, name, problems }) =>
      problems.map((problem) => `${name} at ${address}: ${problem}`)
    )
    return wrong.length === 0 ? found : yield* Effect.fail(wrong.join("\n"))
  })

/** URL of the node: the flag's, or the configuration's for a chain, which keeps its secret off the command line. */
const nodeOf = (rpc: string | undefined, chain: string | undefined) =>
  Effect.gen(function* () {
    if ((rpc === undefined) === (chain === undefined))
      return yield* Effect.fail("expected --rpc URL, or --chain CHAIN for a node of the configuration")
    if (rpc !== undefined) return isHttpUrl(rpc) ? rpc : yield* Effect.fail(`--rpc: ${notHttpUrl}`)
    const chainId = yield* chainOf(chain ?? "", "--chain: ")
    const { networks } = yield* OperatorContext.config
    const node = networks.find((network) => network.chainId === chainId)?.rpc ?? null
    return node === null
      ? yield* Effect.fail(`--chain: the configuration has no node of chain ${chainId}`)
      : Redacted.value(node)
  })

const flags = {
  rpc: optional("rpc", "URL", "the node of the chain"),
  chain: optional("chain", "CHAIN", "chain of the configuration, whose node is used"),
  deployer: required(
    "deployer",
    "ADDRESS",
    "EOA that authorises deployments of wallets: systemKeys.deployer"
  ),
  owner: required("owner", "ADDRESS", "owner of factories and paymaster, cold"),
  "beacon-owner": required(
    "beacon-owner",
    "ADDRESS",
    "EOA that may replace the code of every wallet; keep its key offline"
  ),
  sponsor: optional("sponsor", "ADDRESS", "systemKeys.sponsor; without it there is no paymaster"),
  account: text(
    "account",
    "ID",
    "account that gets its own factory; without the flag one factory is deployed"
  ).pipe(Flag.atLeast(0)),
  payer: optional("payer", "KEY", "payer: env:NAME or file:PATH of a private key, or node"),
  out: optional(
    "out",
    "FILE",
    "where the network profile goes; default: into the configuration, or castellan.network.CHAIN.json without one"
  ),
  "dry-run": flag("dry-run", "show the plan, send nothing, write nothing"),
  yes: flag("yes", "do not ask")
}

export const commands = [
  Command.make("deploy", { ...flags, json }).pipe(
    help(
      "Deploys the missing contracts of a chain: deterministic deployer, EntryPoints, contract suite, a factory per account. Reads all contracts back, and writes the network's part of the configuration, into the file of --config if there is one.",
      "--rpc http://127.0.0.1:8545 --payer node --deployer 0x90F7... --owner 0x15d3... --beacon-owner 0x9965...",
      "--rpc https://node.example --payer env:PAYER --deployer 0x90F7... --owner 0x15d3... --beacon-owner 0x9965... --account acme --dry-run",
      "--config castellan.jsonc --chain 137 --payer env:PAYER --deployer 0x90F7... --owner 0x15d3... --beacon-owner 0x9965... --account acme"
    ),
    report(function* (given) {
      const operator = yield* Operator
      const keys = {
        deployer: yield* Effect.fromResult(addressOf("deployer", given.deployer)),
        owner: yield* Effect.fromResult(addressOf("owner", given.owner)),
        beaconOwner: yield* Effect.fromResult(addressOf("beacon-owner", given["beacon-owner"])),
        sponsor:
          given.sponsor === undefined ? null : yield* Effect.fromResult(addressOf("sponsor", given.sponsor))
      }
      const config = given.out === undefined ? operator.env.CASTELLAN_CONFIG : undefined
      const target =
        config === undefined
          ? null
          : yield* Effect.fromResult(IntoConfig.read(resolve(config), given.account))
      const rpc = yield* nodeOf(given.rpc, given.chain)
      const chainId = yield* Provider.chainIdOf(rpc)
      const local = /^https?:\/\/(127\.0\.0\.1|localhost|\[::1\])[:/]?/i.test(rpc)
      const provider = yield* Provider.connect(rpc, chainId, local ? 50 : 1_000)
      const signer = given.payer === undefined ? null : yield* payerOf(given.payer, operator.env, provider)
      if (!given["dry-run"] && (yield* Effect.promise(() => Plan.isDevelopmentNode(provider))))
        yield* Bring.packages(operator.tell, EntryPoints.absent())
      const plan = yield* attempt("the chain cannot be read", () =>
        Plan.make(provider, { keys, accounts: given.account })
      )
      const payer =
        signer === null
          ? null
          : yield* attempt("--payer", async () => {
              const address = await signer.getAddress()
              return { signer, address, balance: await provider.getBalance(address) }
            })
      const text = shown(plan, chainId, payer)
      const about = { chainId, plan: jsonOf(plan) }
      if (given["dry-run"]) return { text, json: { ...about, verified: null, profile: null } }
      yield* operator.tell(text)
      const obstacles = Plan.obstacles(plan)
      if (obstacles.length > 0) return yield* Effect.fail(obstacles.join("\n"))
      yield* send(payer, provider, plan, operator, given.yes)
      const found = yield* verify(provider, plan, keys)
      const beacon = plan.steps.find(({ name }) => name === "beacon")?.address ?? ""
      const codeHash = yield* attempt("the beacon does not answer", () =>
        Deployment.implementationCodeHash(provider, beacon)
      )
      const profile = Plan.networkEntry(chainId, plan, given.account, codeHash)
      const written = `${JSON.stringify(profile, null, 2)}\n`
      const file = target?.path ?? resolve(given.out ?? `castellan.network.${chainId}.json`)
      const content = target === null ? written : IntoConfig.fill(target, profile)
      yield* attempt(`${file} cannot be written`, async () => writeFileSync(file, content))
      yield* operator.tell(
        target === null
          ? `${file} holds the network for the service's configuration; ${Plan.rpcVariable(chainId)} is to hold the URL of its node`
          : `${file} has the addresses on chain ${chainId}; "castellan config check --connect" checks them`
      )
      return { text: written.trimEnd(), json: { ...about, verified: found, profile, file } }
    })
  )
]

export const notes = [
  "EntryPoints are on every public chain. For a chain without them their authors' npm packages have to be installed in the folder where the command runs; for a node of anvil or Hardhat npm puts them into .castellan there. The command deploys an EntryPoint only at its canonical address.",
  "Rerun the command to resume an interrupted run: contracts on the chain are not deployed again.",
  "The keys of --owner and --beacon-owner sign nothing here: keep them offline."
]

export const environment = [
  "From the environment it reads the variable of --payer env:NAME, and CASTELLAN_CONFIG unless --config or --out is given."
]
