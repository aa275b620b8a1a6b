import * as Castellan from "castellan"
import * as Effect from "effect/Effect"

const { RPC = "", FACTORY = "", BEACON = "", TOKEN = "", SUBMITTER = "", DEPLOYER = "" } = process.env

const castellan = Castellan.layer({
  networks: [{ chainId: 31337, rpc: RPC, factory: FACTORY, beaconAdminAddress: BEACON }],
  signers: [{ clientId: "treasury", versionId: "1", privateKey: SUBMITTER }],
  systemKeys: { deployer: { privateKey: DEPLOYER } }, // authorises deployments at the factory
  egress: { allowLoopback: true } // the chain of this example runs on this machine
})

/** Creates a wallet and lets it mint a token. The wallet pays for both: fund its predicted address first. */
export const program = Effect.gen(function* () {
  const to = yield* Effect.fromResult(Castellan.Address.from(TOKEN))
  const entryPoint = Castellan.EntryPoint.canonical["v0.8"]
  const settings = { rpc: RPC, entryPoint, signer: { clientId: "treasury", versionId: "1" } }
  const bob = { salt: "bob", walletCustody: 1 } as const
  const created = yield* Castellan.CreateWallets.run(yield* Castellan.caller(), { accounts: [bob], settings })
  const wallet = created.returnData[0]?.[0]?.wallet
  const operations = [{ ...bob, to, funcSignature: "mint(address,uint256)", funcParams: [wallet, "1000"] }]
  return yield* Castellan.ExecuteOperations.run(yield* Castellan.caller(), { operations, settings })
}).pipe(Effect.provide(castellan))
