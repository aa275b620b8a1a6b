import type { TransactionReceipt } from "ethers"
import * as Build from "../test/support/faults/Build.js"
import * as Rig from "../test/support/faults/Rig.js"
import * as World from "../test/support/faults/World.js"

/**
 * `npm run bench:engine`: 1,000 operations of 100 wallets through one signer, on a chain with a block per second. Each is
 * a request of its own, all at once; each must land. Prints with how many transactions, in how many blocks.
 */

const wallets = 100
const operations = 1_000

/** Longest for all of it. */
const boundMillis = 180_000

const build = Build.make()
const world = await World.start()
const plain = (url: string) => Promise.resolve({ url, stop: () => Promise.resolve() })
const salts = Array.from({ length: wallets }, (_, n) => `w${n}`)
const rig = await Rig.start(world, build, {
  salts,
  node: plain,
  tenants: 4,
  concurrentRequests: operations + 16,
  receiptTimeoutMillis: boundMillis
})

try {
  const firstNonce = await rig.nonce()
  const firstBlock = await world.provider.getBlockNumber()
  await world.send("evm_setIntervalMining", 1)
  const ids = Array.from({ length: operations }, (_, n) => Rig.idOf(`operation ${n}`))
  const began = performance.now()
  const latencies: Array<number> = []
  let again = 0
  const answers = await Promise.all(
    ids.map(async (id, n) => {
      const body = { operations: [rig.hit(salts[n % wallets] ?? "", id)], settings: rig.settings }
      // A thousand connections at once: one that is not made in time is tried again, with the same key.
      let answer = await rig.once("/execute", `operation ${n}`, body, boundMillis)
      while (answer === null && performance.now() - began < boundMillis) {
        again += 1
        answer = await rig.once("/execute", `operation ${n}`, body, boundMillis)
      }
      latencies.push(performance.now() - began)
      return answer
    })
  )
  const seconds = (performance.now() - began) / 1_000
  const landed = (await Promise.all(ids.map(rig.count))).filter((count) => count === 1).length
  const succeeded = answers.filter((answer) => answer?.status === 200 && answer.body.status === 1).length
  const hashes = new Set(answers.flatMap((answer) => answer?.body.txHash ?? []))
  const receipts = (
    await Promise.all([...hashes].map((hash) => world.provider.getTransactionReceipt(hash)))
  ).filter((receipt): receipt is TransactionReceipt => receipt !== null)
  const blocks = new Set(receipts.map(({ blockNumber }) => blockNumber))
  const gas = receipts.reduce((sum, { gasUsed }) => sum + gasUsed, 0n)
  latencies.sort((one, other) => one - other)
  const at = (share: number) => `${((latencies[Math.floor(operations * share)] ?? 0) / 1_000).toFixed(1)} s`
  console.log(`${operations} operations of ${wallets} wallets through one signer, a block per second`)
  console.log(`landed ${landed}, answered with success ${succeeded}, in ${seconds.toFixed(1)} s`)
  console.log(
    `transactions ${(await rig.nonce()) - firstNonce}, blocks with them ${blocks.size} of ${(await world.provider.getBlockNumber()) - firstBlock}`
  )
  console.log(`gas per operation ${gas / BigInt(operations)}`)
  console.log(`connections tried again ${again}`)
  console.log(`answered after: half ${at(0.5)}, 90 % ${at(0.9)}, 99 % ${at(0.99)}`)
  const others = new Map<string, number>()
  for (const answer of answers) {
    if (answer?.status === 200 && answer.body.status === 1) continue
    const text = answer === null ? "no answer" : `${answer.status} ${answer.body.code ?? answer.body.status}`
    others.set(text, (others.get(text) ?? 0) + 1)
  }
  for (const [text, count] of others) console.log(`not answered with success: ${count} x ${text}`)
  process.exitCode = landed === operations && succeeded === operations ? 0 : 1
} finally {
  await rig.stop()
  await world.stop()
  build.remove()
}
