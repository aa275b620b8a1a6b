import { createPublicClient, encodeFunctionData, http, parseAbi } from "viem"
import { entryPoint07Abi, getUserOperationHash, toPackedUserOperation } from "viem/account-abstraction"
import { privateKeyToAccount } from "viem/accounts"
import { foundry } from "viem/chains"
import { answer, cpuMillis } from "./answer.mjs"

/**
 * The floor: viem signs SimpleAccounts' ops with fixed gas and packs them into handleOps transactions, without simulation,
 * storage or other callers.
 */

const factoryAbi = parseAbi([
  "function createAccount(address owner, uint256 salt) returns (address)",
  "function getAddress(address owner, uint256 salt) view returns (address)"
])
const accountAbi = parseAbi(["function execute(address dest, uint256 value, bytes func)"])
const tokenAbi = parseAbi(["function transfer(address to, uint256 value) returns (bool)"])
const nonceAbi = parseAbi(["function getNonce(address sender, uint192 key) view returns (uint256)"])

const fees = { maxFeePerGas: 20n * 10n ** 9n, maxPriorityFeePerGas: 10n ** 9n }
const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

let world

const receipt = async (hash) => {
  for (;;) {
    const found = await world.client.request({ method: "eth_getTransactionReceipt", params: [hash] })
    if (found !== null) return found
    await pause(1)
  }
}

const submit = async (to, data, gas) => {
  const nonce = world.nonce++
  const signed = await world.bundler.signTransaction({
    type: "eip1559",
    chainId: 31337,
    nonce,
    to,
    data,
    gas,
    ...fees
  })
  const hash = await world.client.request({ method: "eth_sendRawTransaction", params: [signed] })
  const mined = await receipt(hash)
  if (mined.status !== "0x1") throw new Error(`a transaction failed: ${hash}`)
  return mined
}

const transfer = (recipient) => {
  const call = encodeFunctionData({ abi: tokenAbi, functionName: "transfer", args: [recipient, 1n] })
  const args = [world.token, 0n, call]
  return {
    callData: encodeFunctionData({ abi: accountAbi, functionName: "execute", args }),
    verificationGasLimit: 100_000n
  }
}

/** An op without a call, whose initCode deploys the wallet. */
const creation = ({ salt }) => ({
  callData: "0x",
  factory: world.factory,
  factoryData: createAccount(salt),
  verificationGasLimit: 350_000n
})

const createAccount = (salt) =>
  encodeFunctionData({ abi: factoryAbi, functionName: "createAccount", args: [world.owner.address, salt] })

const predicted = (salt) =>
  world.client.readContract({
    address: world.factory,
    abi: factoryAbi,
    functionName: "getAddress",
    args: [world.owner.address, salt]
  })

/** `readNonces`: one eth_call per op, all in one HTTP request; otherwise counts nonces locally. */
const bundle = async (wallets, opOf, readNonces = false) => {
  const { client, entryPoint, owner } = world
  const nonces = readNonces
    ? await Promise.all(
        wallets.map(({ address }) =>
          client.readContract({
            address: entryPoint,
            abi: nonceAbi,
            functionName: "getNonce",
            args: [address, 0n]
          })
        )
      )
    : wallets.map((wallet) => wallet.nonce)
  const ops = await Promise.all(
    wallets.map(async (wallet, place) => {
      const userOperation = {
        sender: wallet.address,
        nonce: nonces[place],
        callGasLimit: 100_000n,
        preVerificationGas: 50_000n,
        ...fees,
        ...opOf(wallet),
        signature: "0x"
      }
      const parameters = {
        chainId: 31337,
        entryPointAddress: entryPoint,
        entryPointVersion: "0.7",
        userOperation
      }
      const signature = await owner.signMessage({ message: { raw: getUserOperationHash(parameters) } })
      wallet.nonce = nonces[place] + 1n
      return toPackedUserOperation({ ...userOperation, signature })
    })
  )
  const data = encodeFunctionData({
    abi: entryPoint07Abi,
    functionName: "handleOps",
    args: [ops, world.bundler.address]
  })
  await submit(entryPoint, data, 150_000n + BigInt(ops.length) * 400_000n)
}

answer({
  setup: async ({ bundlerKey, count, entryPoint, factory, ownerKey, rpc, token }) => {
    const client = createPublicClient({ chain: foundry, transport: http(rpc, { batch: { wait: 0 } }) })
    const [bundler, owner] = [bundlerKey, ownerKey].map((key) => privateKeyToAccount(key))
    const nonce = await client.getTransactionCount({ address: bundler.address })
    world = { client, bundler, owner, entryPoint, factory, token, nonce, salt: 0n }
    const wallets = []
    for (; world.salt < count; world.salt++) {
      const address = await predicted(world.salt)
      await submit(factory, createAccount(world.salt), 1_000_000n)
      wallets.push({ address, nonce: 0n })
    }
    world.wallets = wallets
    return wallets.map(({ address }) => address)
  },
  /** Addresses of the wallets that `create` deploys. */
  predict: async ({ count }) => {
    world.fresh = []
    for (let n = 0; n < count; n++) {
      const salt = world.salt++
      world.fresh.push({ address: await predicted(salt), salt, nonce: 0n })
    }
    return world.fresh.map(({ address }) => address)
  },
  /** Deploys the predicted wallets by their ops, so many in a transaction. */
  create: async ({ perTransaction }) => {
    const { fresh } = world
    const latencies = []
    const cpu = cpuMillis()
    const began = performance.now()
    for (let at = 0; at < fresh.length; at += perTransaction) {
      const from = performance.now()
      await bundle(fresh.slice(at, at + perTransaction), creation)
      latencies.push(performance.now() - from)
    }
    const seconds = (performance.now() - began) / 1_000
    return { ops: fresh.length, seconds, latencies, cpuMillis: cpuMillis() - cpu }
  },
  /** Sends transactions one after the other until the time is over or `most` are mined. */
  run: async ({ millis, most, perTransaction, readNonces, recipient }) => {
    const { wallets } = world
    const latencies = []
    const cpu = cpuMillis()
    const began = performance.now()
    for (let at = 0; performance.now() - began < millis && latencies.length < most; at += perTransaction) {
      const from = performance.now()
      const chosen = Array.from({ length: perTransaction }, (_, n) => wallets[(at + n) % wallets.length])
      await bundle(chosen, () => transfer(recipient), readNonces)
      latencies.push(performance.now() - from)
    }
    const seconds = (performance.now() - began) / 1_000
    const ops = latencies.length * perTransaction
    return { ops, seconds, latencies, cpuMillis: cpuMillis() - cpu }
  }
})
