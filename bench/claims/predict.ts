import * as Result from "effect/Result"
import { AbiCoder, getCreate2Address, keccak256, toUtf8Bytes } from "ethers"
import * as Address from "../../src/domain/primitives/Address.js"
import * as WalletAddress from "../../src/domain/wallet/WalletAddress.js"
import { walletProxyCreationCode } from "../../src/domain/wallet/WalletProxy.generated.js"
import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure } from "../harness/Claim.js"
import { closedLoop } from "../harness/Client.js"
import type { Contender, Functions } from "../harness/Peers.js"
import * as Peers from "../harness/Peers.js"
import * as Processes from "../harness/Processes.js"
import * as Rates from "../harness/Rates.js"
import { alternate, figure, median, ratio } from "../harness/Stats.js"
import * as Wallets from "../harness/Wallets.js"
import * as World from "../harness/World.js"

/** Predictions over HTTP, 256 per request, against in-process loops over the same derivation from the salt. */

const size = 256

export const claim: Claim = {
  name: "predict",
  title: "Predict, 256 a request",
  boundSeconds: 120,
  run: async (context) => {
    const world = await World.start(context)
    const castellan = await Castellan.start(context, world, { accounts: 20, profile: "predict" })
    const settings = Wallets.predictSettings(world)
    const code = Result.getOrThrow(WalletAddress.creationCode(walletProxyCreationCode))
    const initCodeHash = WalletAddress.initCodeHash(code, Address.unsafe(settings.beaconAdminAddress))
    const inputs = { factory: settings.factory, initCodeHash: String(initCodeHash) }
    const ethers: Contender = (input) => {
      const salt = String(input)
      const hash = keccak256(toUtf8Bytes(salt))
      const encoded = AbiCoder.defaultAbiCoder().encode(["bytes32", "uint256"], [hash, 1n])
      return getCreate2Address(inputs.factory, keccak256(encoded), inputs.initCodeHash)
    }
    const peers = context.peers ? await Peers.load<Functions>("functions.mjs") : null
    const inProcess: Record<string, Contender> = { ethers }
    for (const name of ["viem", "ox"] as const) {
      const made = peers?.[name].predict
      if (made !== undefined) inProcess[name] = made(inputs)
    }

    let requests = 0
    const saltsOf = (request: number) => Array.from({ length: size }, (_, n) => `salt ${request} of ${n}`)
    const checked = await Wallets.predict(world, castellan, saltsOf(-1))
    for (const [name, derive] of Object.entries(inProcess))
      for (const [n, salt] of saltsOf(-1).entries())
        ensure(derive(salt) === checked[n], `${name} derives ${derive(salt)} for ${salt}, not ${checked[n]}`)

    const own = async (): Promise<number> => {
      const cpu = Processes.cpuMillis(castellan.pid)
      const load = await closedLoop({ callers: 2, millis: context.size(4_000, 500) }, async () => {
        await Wallets.predict(world, castellan, saltsOf(requests++))
      })
      return (load.done * size * 1_000) / (Processes.cpuMillis(castellan.pid) - cpu)
    }
    await own()
    let salt = 0
    const loop = (derive: Contender) => async (): Promise<number> => {
      const rates = await Rates.perCpuSecond(
        { one: () => derive(`salt ${salt++} of a loop`) },
        { rounds: 1, seconds: context.size(1, 0.05) }
      )
      return rates.one
    }
    const samples: Readonly<Record<string, ReadonlyArray<number>>> = await alternate(context.rounds, {
      castellan: own,
      ...Object.fromEntries(Object.entries(inProcess).map(([name, derive]) => [name, loop(derive)]))
    })
    await castellan.stop()
    const rate = (name: string) => median(samples[name] ?? [])
    const rows = Object.keys(inProcess).map((name) => {
      const share = rate("castellan") / rate(name)
      return {
        what: `addresses for a second of CPU, against ${name} in process`,
        castellan: `${figure(rate("castellan"))}`,
        against: figure(rate(name)),
        ratio: ratio(share),
        demand: name === "viem" ? "at least 5 x" : "-",
        met: name === "viem" ? share >= 5 : null
      }
    })
    return { rows, notes, raw: samples }
  }
}

const notes = [
  "castellan: HTTP, JSON, schema, key, limits and log line included, CPU of the service's process. The others: a loop in one process over keccak256 of the salt's UTF-8, keccak256(abi.encode(hash, custody)), CREATE2, checksum. All must agree in 256 addresses first."
]
