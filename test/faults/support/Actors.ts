import { AbiCoder, keccak256, parseUnits, toBeHex, type Wallet } from "ethers"
import type { Event, Mining } from "./Scenario.js"
import type { World } from "./World.js"

/** All actors on the chain except the service. */
export interface Actors {
  /** Blocks as planned, from now on. */
  readonly mine: (mining: Mining) => Promise<void>
  readonly play: (event: Event) => Promise<void>
  /** Cheap gas, an open gate, and automatic blocks where they are needed. */
  readonly calm: (blocks: boolean) => Promise<void>
  /** A block per transaction and an empty pool, as the next run expects the chain. */
  readonly leave: () => Promise<void>
  /** Counts of events, by kind. */
  readonly done: () => ReadonlyMap<string, number>
}

const gwei = (amount: number): string => toBeHex(parseUnits(String(amount), "gwei")).replace(/^0x0+/, "0x")

/** Storage slot of `closed[gate]` of the counter. */
const slotOf = (gate: string): string =>
  keccak256(AbiCoder.defaultAbiCoder().encode(["bytes32", "uint256"], [gate, 1]))

interface BlockJson {
  readonly transactions: ReadonlyArray<string>
}

export const make = (
  { counter, provider, send }: World,
  signers: ReadonlyArray<Wallet>,
  gate: string
): Actors => {
  const done = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let mining = Promise.resolve<unknown>(undefined)
  let baseFee: string | null = null
  /** Between blocks, where anvil makes them by itself. */
  let seconds: number | null = null

  const count = (kind: string) => done.set(kind, (done.get(kind) ?? 0) + 1)
  /** One after the other: anvil does not keep both its state and a block made during a reorg. */
  const alone = <A>(act: () => Promise<A>): Promise<A> => {
    const acted = mining.then(act)
    mining = acted.catch(() => undefined)
    return acted
  }
  const block = () =>
    alone(async () => {
      if (baseFee !== null) await send("anvil_setNextBlockBaseFeePerGas", baseFee)
      await send("evm_mine")
    })
  const steady = (millis: number) => {
    let busy = false
    timer = setInterval(() => {
      if (busy) return
      busy = true
      void block()
        .catch(() => undefined)
        .finally(() => {
          busy = false
        })
    }, millis)
  }
  const halt = async () => {
    clearInterval(timer)
    timer = undefined
    await mining
  }

  const foreign = async (place: number, race: boolean) => {
    const signer = signers[place]
    if (signer === undefined) return
    const nonce = await provider.getTransactionCount(signer.address, race ? "latest" : "pending")
    const raw = await signer.signTransaction({
      type: 2,
      chainId: 31337,
      nonce,
      to: signer.address,
      gasLimit: 21_000,
      maxFeePerGas: parseUnits("400", "gwei"),
      maxPriorityFeePerGas: parseUnits("90", "gwei")
    })
    // Another actor was faster.
    await send("eth_sendRawTransaction", raw).catch(() => undefined)
  }

  const reorg = async (depth: number, returned: boolean) => {
    if (seconds !== null) await send("evm_setIntervalMining", 0)
    await alone(() => revokeRemote(depth, returned))
    if (seconds !== null) await send("evm_setIntervalMining", seconds)
  }

  const revokeRemote = async (depth: number, returned: boolean) => {
    const head = await provider.getBlockNumber()
    const lost: Array<string> = []
    for (let number = head - depth + 1; number <= head; number += 1) {
      const found = (await send("eth_getBlockByNumber", `0x${number.toString(16)}`, false)) as BlockJson
      for (const hash of found.transactions)
        lost.push(String(await send("eth_getRawTransactionByHash", hash)))
    }
    await send("anvil_reorg", depth, [])
    // A node returns the transactions of dropped blocks to its pool, unless it has lost them.
    if (returned) for (const raw of lost) await send("eth_sendRawTransaction", raw).catch(() => undefined)
  }

  const dropped = async () => {
    for (const { address } of signers) await send("anvil_removePoolTransactions", address)
  }

  const setGate = async (closed: boolean) => {
    await send("anvil_setStorageAt", await counter.getAddress(), slotOf(gate), toBeHex(closed ? 1 : 0, 32))
  }

  const play = async (event: Event): Promise<void> => {
    switch (event.kind) {
      case "foreign transaction":
        return foreign(event.signer, event.nonce === "race")
      case "reorg":
        return reorg(event.depth, event.returned)
      case "fee spike":
        baseFee = gwei(event.gwei)
        await block()
        await new Promise((resolve) => setTimeout(resolve, event.millis))
        baseFee = null
        await send("anvil_setNextBlockBaseFeePerGas", gwei(1))
        await send("evm_mine")
        return
      case "dropped transactions":
        return dropped()
      case "empty block":
        await dropped()
        await send("evm_mine")
        return
      case "gate":
        return setGate(event.closed)
    }
  }

  return {
    mine: async (plan) => {
      await halt()
      switch (plan.mode) {
        case "automine":
          await send("evm_setAutomine", true)
          return
        case "steady":
          await send("evm_setAutomine", false)
          return steady(plan.millis)
        case "interval":
          seconds = plan.seconds
          await send("evm_setIntervalMining", plan.seconds)
      }
    },
    play: async (event) => {
      await play(event)
      count(event.kind)
    },
    calm: async (blocks) => {
      baseFee = null
      await setGate(false)
      await send("anvil_setNextBlockBaseFeePerGas", gwei(1))
      await send("evm_mine")
      if (blocks && timer === undefined) steady(200)
    },
    leave: async () => {
      await halt()
      seconds = null
      await send("evm_setIntervalMining", 0)
      await send("evm_setAutomine", true)
      await send("anvil_dropAllTransactions")
      await send("anvil_setNextBlockBaseFeePerGas", gwei(1))
      await send("evm_mine")
    },
    done: () => done
  }
}
