import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure } from "../harness/Claim.js"
import { closedLoop } from "../harness/Client.js"
import * as Processes from "../harness/Processes.js"
import { alternate, figure, median, ratio } from "../harness/Stats.js"
import * as Wallets from "../harness/Wallets.js"
import * as World from "../harness/World.js"

/** Two accounts of one service, 40 callers in a closed loop, an ERC-20 transfer a request: one of them has spending rules. */

const callers = 40

/** 20 rules, where the last one allows, and 10 limits that all count and never bind. */
const policyOf = ({ chain: { chainId, token } }: World.World) => ({
  mode: "enforce",
  expiresAt: 0,
  rules: Array.from({ length: 20 }, (_, n) => ({
    name: `rule-${n}`,
    effect: n === 19 ? "allow" : "refuse",
    match: {
      kinds: ["erc20.transfer"],
      ...(n < 19 && { to: [`0x${(n + 1).toString(16).padStart(40, "b")}`] })
    }
  })),
  limits: Array.from({ length: 10 }, (_, n) => ({
    name: `limit-${n}`,
    chain: String(chainId),
    asset: [token, "fees", "ops"][n % 3],
    per: n === 9 ? "op" : ["day", "24h", "30d"][Math.floor(n / 3)],
    max: (10n ** 30n).toString()
  }))
})

export const claim: Claim = {
  name: "rules",
  title: "Spending rules and previews",
  boundSeconds: 300,
  run: async (context) => {
    const world = await World.start(context)
    const service = await Castellan.start(context, world, {
      accounts: 2,
      signers: 2,
      limits: Castellan.unbound,
      profile: "rules"
    })
    const file = join(service.folder, "policy.json")
    writeFileSync(file, JSON.stringify(policyOf(world)))
    const salts = Array.from({ length: callers }, (_, n) => `rules ${n}`)
    const accounts = [Castellan.as(service, 0), Castellan.as(service, 1)] as const
    for (const [place, account] of accounts.entries())
      await Wallets.create(
        world,
        account,
        salts.map((salt) => `${place} ${salt}`)
      )
    execFileSync(
      process.execPath,
      [
        join(context.build.folder, "src/hosts/cli/castellan.js"),
        "policies",
        "set",
        "account-1",
        "account",
        file
      ],
      {
        env: { ...process.env, CASTELLAN_CONFIG: join(service.folder, "castellan.json") },
        cwd: service.folder
      }
    )
    const sample = async (most: number, one: (caller: number) => Promise<void>) => {
      const cpu = Processes.cpuMillis(service.pid)
      const load = await closedLoop({ callers, millis: 120_000, most }, one)
      return { cpuMillis: (Processes.cpuMillis(service.pid) - cpu) / load.done, p50: median(load.latencies) }
    }
    const execute =
      (place: 0 | 1, most = context.size(500, 40)) =>
      async () => {
        const to = Wallets.recipient()
        const found = await sample(most, async (caller) => {
          await Wallets.execute(world, accounts[place], [`${place} ${salts[caller]}`], to)
        })
        ensure((await world.balance(to)) === most, "not every transfer arrived once")
        return found
      }
    const estimate = (preview: boolean) => () =>
      sample(context.size(200, 40), async (caller) => {
        const operations = [Wallets.transfer(world, `0 ${salts[caller]}`, Wallets.recipient())]
        await accounts[0].ok("/estimateGas", { operations, preview, settings: accounts[0].settings })
      })
    const contenders = {
      plain: execute(0),
      ruled: execute(1),
      estimated: estimate(false),
      previewed: estimate(true)
    }
    if (!context.quick) await alternate(1, contenders)
    const samples = await alternate(context.size(4, 1), contenders)
    await service.stop()
    const of = (name: keyof typeof samples, key: "cpuMillis" | "p50") =>
      median(samples[name].map((each) => each[key]))
    const row = (
      what: string,
      more: keyof typeof samples,
      less: keyof typeof samples,
      most: number | null
    ) => {
      const [cpu, before] = [of(more, "cpuMillis"), of(less, "cpuMillis")]
      return {
        what,
        castellan: `${figure(cpu)} ms, p50 ${figure(of(more, "p50"))} ms`,
        against: `without: ${figure(before)} ms, p50 ${figure(of(less, "p50"))} ms`,
        ratio: `${ratio(cpu / before)}, ${figure(cpu - before)} ms more`,
        demand: most === null ? "-" : `at most ${most} ms more`,
        met: most === null ? null : cpu - before <= most
      }
    }
    return {
      rows: [
        row("CPU of an op with 20 rules and 10 limits", "ruled", "plain", 0.1),
        row("CPU of `/estimateGas` with a preview", "previewed", "estimated", null)
      ],
      notes: ["40 callers, an ERC-20 transfer a request, medians of alternating rounds of one process."],
      raw: samples
    }
  }
}
