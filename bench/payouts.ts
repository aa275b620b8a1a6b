import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ExecuteOperations from "../src/application/endpoints/operations/ExecuteOperations.js"
import * as GetRequest from "../src/application/endpoints/operations/GetRequest.js"
import * as Start from "../src/application/operate/Start.js"
import type { Operation } from "../src/application/prepare/Operation.js"
import { Address, startStack } from "../test/support/stack/Stack.js"

/**
 * `npm run bench:payouts -- N`: one request of N ERC-20 transfers (default 10,000) from 100 wallets, with a block a second
 * and the engine in this process with SQLite on disk. Reports time of acceptance, transactions and blocks, gas against the
 * operator's limit, operations a second, and memory.
 */

const count = Number(process.argv[2] ?? 10_000)
const bound = 15_000_000n
const to = `0x${"00".repeat(18)}beef`

const stack = await startStack({
  profile: {
    caps: { maxFeePerGas: 500_000_000_000n, maxPriorityFeePerGas: 100_000_000_000n, transactionGas: bound },
    receiptTimeoutMillis: 120_000
  }
})
const folder = mkdtempSync(join(tmpdir(), "payouts-"))
const life = stack.begin({ database: join(folder, "castellan.sqlite") })
try {
  const salts = Array.from({ length: 100 }, (_, n) => `payer ${n}`)
  for (let n = 0; n < salts.length; n += 20) await stack.create(...salts.slice(n, n + 20))
  for (const salt of salts) {
    await stack.mint(String(stack.predict(salt)), 1_000_000n)
    await stack.fund(String(stack.predict(salt)), 10n ** 21n)
  }
  await stack.provider.send("evm_setIntervalMining", [1])
  await life.runPromise(Start.start)
  const operations = Array.from(
    { length: count },
    (_, n): Operation => ({
      salt: salts[n % salts.length] ?? "",
      walletCustody: 1,
      to: Address.unsafe(String(stack.token.target)),
      funcSignature: "transfer(address,uint256)",
      funcParams: [to, "1"]
    })
  )
  const caller = stack.caller()
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss)
  }, 100)
  const began = performance.now()
  let accepted = 0
  await new Promise<void>((resolve, reject) => {
    const onAccepted = () => {
      // Called for each accepted slice.
      if (accepted === 0) accepted = performance.now()
      resolve()
    }
    const asked = { ...caller, isAsynchronous: true, onAccepted }
    life.runPromise(ExecuteOperations.run(asked, { operations, settings: stack.settings })).catch(reject)
  })
  let state = await life.runPromise(GetRequest.run(caller, { requestId: caller.requestId, wait: "60" }))
  while (state.state !== "final")
    state = await life.runPromise(GetRequest.run(caller, { requestId: caller.requestId, wait: "60" }))
  const seconds = (performance.now() - began) / 1_000
  clearInterval(watch)
  const receipts = await Promise.all(state.txHashes.map((hash) => stack.provider.getTransactionReceipt(hash)))
  const blocks = new Set(receipts.map((receipt) => receipt?.blockNumber))
  const gas = receipts.reduce((sum, receipt) => sum + (receipt?.gasUsed ?? 0n), 0n)
  console.log(
    [
      `operations ${count}, succeeded ${state.progress.succeeded}, failed ${state.progress.failed}`,
      `accepted after ${((accepted - began) / 1_000).toFixed(2)} s`,
      `final after ${seconds.toFixed(1)} s: ${(count / seconds).toFixed(1)} operations/s`,
      `${receipts.length} transactions in ${blocks.size} blocks, ${gas / BigInt(blocks.size)} gas a block, bound of a transaction ${bound}`,
      `memory at most ${Math.round(most / 2 ** 20)} MiB`
    ].join("\n")
  )
} finally {
  await life.dispose()
  await stack.stop()
  rmSync(folder, { recursive: true, force: true })
}
