import { createRequire } from "node:module"
import { Contract, ContractFactory, concat, getBytes, toBeHex, zeroPadValue } from "ethers"
import { type EntryPointVersion, entryPoints } from "../../src/hosts/cli/deploy/EntryPoints.js"
import { type Chain, devKey } from "../../test/support/suite/Chain.js"
import { hashOf, newOp, type Op } from "../../test/support/suite/Ops.js"
import type { Account } from "./Account.js"
import { type Compiled, compilePeer, packageVersion, peersFolder } from "./compile.js"

const fromPeers = createRequire(`${peersFolder}/package.json`)

const resolve = (path: string) => fromPeers.resolve(path.startsWith("contracts/") ? `./${path}` : path)

const deploy = async (chain: Chain, { abi, bytecode }: Compiled, argument: string): Promise<Contract> => {
  const deployed = await new ContractFactory(abi, bytecode, chain.stranger).deploy(argument)
  await deployed.waitForDeployment()
  return new Contract(await deployed.getAddress(), abi, chain.provider)
}

/** Solady's ERC4337 behind its minimal ERC-1967 proxy. */
export const soladyAccount = async (chain: Chain, version: EntryPointVersion): Promise<Account> => {
  const accountCode = compilePeer("contracts/SoladyAccount.sol", "SoladyAccount", resolve)
  const factoryCode = compilePeer("solady/src/accounts/ERC4337Factory.sol", "ERC4337Factory", resolve)
  const implementation = await deploy(chain, accountCode, entryPoints[version])
  const factory = await deploy(chain, factoryCode, String(implementation.target))
  const owner = devKey(20)
  const sign = async (op: Op): Promise<Op> => ({
    ...op,
    signature: await owner.signMessage(getBytes(await hashOf(chain, version, op)))
  })
  return {
    name: "Solady ERC4337",
    source: `solady ${packageVersion(fromPeers.resolve("solady/package.json"))}`,
    build: "this suite's settings",
    version,
    creation: async (number) => {
      // The owner is the upper 20 bytes of the salt.
      const salt = concat([owner.address, zeroPadValue(toBeHex(number), 12)])
      const sender: string = await factory.getFunction("getAddress").staticCall(salt)
      const data = factory.interface.encodeFunctionData("createAccount", [salt])
      return sign(newOp(sender, { initCode: concat([String(factory.target), data]) }))
    },
    execute: (target, data, value) =>
      implementation.interface.encodeFunctionData("execute", [target, value, data]),
    sign
  }
}
