import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { Contract, ContractFactory, concat, getBytes } from "ethers"
import { type EntryPointVersion, entryPoints } from "../../src/hosts/cli/deploy/EntryPoints.js"
import { type Chain, devKey } from "../../test/support/suite/Chain.js"
import { hashOf, newOp, type Op } from "../../test/support/suite/Ops.js"
import type { Account } from "./Account.js"
import { type Compiled, compilePeer, packageVersion, peersFolder } from "./compile.js"

const require = createRequire(import.meta.url)
const fromPeers = createRequire(`${peersFolder}/package.json`)

/** solc of the published artifact, by the end of its metadata; the package does not state its optimizer's runs. */
const published: Readonly<Record<EntryPointVersion, string>> = {
  "v0.6": "as published, solc 0.8.17",
  "v0.7": "as published, solc 0.8.23",
  "v0.8": "as published, solc 0.8.28"
}

const folder = (version: EntryPointVersion) => (version === "v0.8" ? "accounts" : "samples")

/** v0.6 was written against OpenZeppelin 4. */
const resolverOf = (version: EntryPointVersion) => (path: string) =>
  version === "v0.6" && path.startsWith("@openzeppelin/contracts/")
    ? fromPeers.resolve(path.replace("@openzeppelin/contracts/", "@openzeppelin/contracts-v4/"))
    : require.resolve(path)

const factoryCode = (version: EntryPointVersion, asPublished: boolean): Compiled => {
  const name = `@account-abstraction/contracts-${version}`
  if (asPublished)
    return JSON.parse(readFileSync(require.resolve(`${name}/artifacts/SimpleAccountFactory.json`), "utf8"))
  const source = `${name}/${folder(version)}/SimpleAccountFactory.sol`
  return compilePeer(source, "SimpleAccountFactory", resolverOf(version))
}

/** eth-infinitism's SimpleAccount behind an ERC-1967 proxy. */
export const simpleAccount = async (
  chain: Chain,
  version: EntryPointVersion,
  asPublished: boolean
): Promise<Account> => {
  const { abi, bytecode } = factoryCode(version, asPublished)
  const deployed = await new ContractFactory(abi, bytecode, chain.stranger).deploy(entryPoints[version])
  await deployed.waitForDeployment()
  const factory = new Contract(await deployed.getAddress(), abi, chain.provider)
  const account = new Contract(factory.target, ["function execute(address,uint256,bytes)"]).interface
  const owner = devKey(20)
  const sign = async (op: Op): Promise<Op> => {
    const hash = await hashOf(chain, version, op)
    const signature =
      version === "v0.8" ? owner.signingKey.sign(hash).serialized : await owner.signMessage(getBytes(hash))
    return { ...op, signature }
  }
  const manifest = require.resolve(`@account-abstraction/contracts-${version}/package.json`)
  return {
    name: "SimpleAccount",
    source: `@account-abstraction/contracts ${packageVersion(manifest)}`,
    build: asPublished ? published[version] : "this suite's settings",
    version,
    creation: async (number) => {
      const args = [owner.address, number]
      const sender: string = await factory.getFunction("getAddress").staticCall(...args)
      const data = factory.interface.encodeFunctionData("createAccount", args)
      return sign(newOp(sender, { initCode: concat([String(factory.target), data]) }))
    },
    execute: (target, data, value) => account.encodeFunctionData("execute", [target, value, data]),
    sign
  }
}
