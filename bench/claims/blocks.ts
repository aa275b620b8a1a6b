import type { TransactionReceipt } from "ethers"
import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure } from "../harness/Claim.js"
import * as Database from "../harness/Database.js"
import { figure, quantile } from "../harness/Stats.js"
import * as Wallets from "../harness/Wallets.js"
import * as World from "../harness/World.js"

/** Many concurrent requests through one signer, on a chain with a block a second. Each lands once. */

/** The default limit of a transaction's gas. */
const mostGas = 16_777_216

export const claim: Claim = {
  name: "blocks",
  title: "1,000 simultaneous requests, a block a second",
  boundSeconds: 420,
  run: async (context) => {
    const [wallets, requests] = [context.size(100, 10), context.size(1_000, 30)]
    const world = await World.start(context)
    const options = {
      accounts: 1,
      limits: Castellan.unbound,
      network: { bumpAfterMillis: 2_000 },
      profile: "blocks"
    }
    const castellan = await Castellan.start(context, world, options)
    const salts = Array.from({ length: wallets }, (_, n) => `block ${n}`)
    await Wallets.create(world, castellan, salts)
    const before = Database.lastRequest(castellan.database)
    await world.send("evm_setIntervalMining", 1)
    const to = Wallets.recipient()
    const began = performance.now()
    const answers = await Promise.all(
      Array.from({ length: requests }, async (_, n) => {
        const { txHash } = await Wallets.execute(world, castellan, [salts[n % wallets] ?? ""], to)
        return { txHash, millis: performance.now() - began }
      })
    )
    const seconds = (performance.now() - began) / 1_000
    await world.send("evm_setAutomine", true)
    const arrived = await world.balance(to)
    ensure(arrived === requests, `${arrived} transfers arrived of ${requests}`)

    const hashes = [...new Set(answers.map(({ txHash }) => txHash))]
    const found = await Promise.all(hashes.map((hash) => world.provider.getTransactionReceipt(hash)))
    const receipts = found.filter((receipt): receipt is TransactionReceipt => receipt !== null)
    ensure(receipts.length === hashes.length, "a transaction that was named is not on the chain")
    const accepted = Database.acceptedAfter(castellan.database, before)
    ensure(accepted.length === requests, `${accepted.length} requests were accepted of ${requests}`)
    const numbers = [...new Set(receipts.map(({ blockNumber }) => blockNumber))].sort(
      (one, other) => one - other
    )
    const blocks = await Promise.all(numbers.map((number) => world.provider.getBlock(number)))
    // A block with a timestamp in the second of the acceptance may precede it.
    const last = Math.floor(Math.max(...accepted) / 1_000)
    const after = blocks.filter((block) => (block?.timestamp ?? 0) > last).length
    const limits = await Promise.all(hashes.map((hash) => world.provider.getTransaction(hash)))
    const fill = limits.reduce((sum, sent) => sum + Number(sent?.gasLimit ?? 0n), 0) / hashes.length / mostGas
    const gas = receipts.reduce((sum, { gasUsed }) => sum + Number(gasUsed), 0)
    const at = (share: number) =>
      `${figure(
        quantile(
          answers.map(({ millis }) => millis),
          share
        ) / 1_000
      )} s`
    return {
      rows: [
        row("blocks after the last request was accepted", String(after), "at most 6", after <= 6),
        row("transactions", `${hashes.length} in ${numbers.length} blocks`, "-", null),
        row("gas limit of a transaction, of the operator's bound", `${figure(fill * 100)} %`, "-", null),
        row("gas used in a block with ops", figure(gas / numbers.length), "-", null),
        row("answered after, p50, p90 and p99", `${at(0.5)}, ${at(0.9)}, ${at(0.99)}`, "-", null),
        row("ops a second", figure(requests / seconds), "-", null)
      ],
      notes: [
        `${requests} simultaneous requests with an ERC-20 transfer each, from ${wallets} wallets, one signer. Each transfer has arrived once.`
      ],
      raw: { after, transactions: hashes.length, blocks: numbers, gas, fill, seconds, answers }
    }
  }
}

const row = (what: string, castellan: string, demand: string, met: boolean | null) => ({
  what,
  castellan,
  against: "-",
  ratio: "-",
  demand,
  met
})
