import { CastellanError, create } from "castellan/promise"

const { RPC = "", FACTORY = "", BEACON = "", TOKEN = "", SUBMITTER = "", DEPLOYER = "" } = process.env

/** Creates a wallet and mints a token from it, without Effect. The wallet pays: fund its predicted address first. */
export const program = async () => {
  const castellan = await create({
    networks: [{ chainId: 31337, rpc: RPC, factory: FACTORY, beaconAdminAddress: BEACON }],
    signers: [{ clientId: "treasury", versionId: "1", privateKey: SUBMITTER }],
    systemKeys: { deployer: { privateKey: DEPLOYER } }, // authorises deployments at the factory
    egress: { allowLoopback: true } // the chain of this example runs on this machine
  })
  try {
    const entryPoint = "0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108"
    const settings = { rpc: RPC, entryPoint, signer: { clientId: "treasury", versionId: "1" } }
    const alice = { salt: "alice", walletCustody: 1 } as const
    const created = await castellan.create({ accounts: [alice], settings })
    const wallet = created.outcomes[0]?.wallet
    const operations = [
      { ...alice, to: TOKEN, funcSignature: "mint(address,uint256)", funcParams: [wallet, "1000"] }
    ]
    return await castellan.execute({ operations, settings })
  } catch (error) {
    if (error instanceof CastellanError) console.error(error.code, error.details)
    throw error
  } finally {
    await castellan.close()
  }
}
