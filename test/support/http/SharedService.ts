import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { HDNodeWallet, Mnemonic, NonceManager, Wallet } from "ethers"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { factoryOf } from "../../../src/hosts/cli/deploy/Suite.js"
import type { StartNode } from "../../../src/hosts/cli/dev/DevChain.js"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import * as Wiring from "../../../src/hosts/Wiring.js"
import { startPrepared } from "../../../tools/PreparedChain.js"
import { use } from "../Use.js"
import * as DevService from "./DevService.js"

/** Number of users that a service has in sequence, each with separate accounts, signer and factory. */
const size = 24

const tiers = ["free", "pro", "enterprise"] as const
type Tier = (typeof tiers)[number]

const phrase = Mnemonic.fromPhrase("test test test test test test test test test test test junk")
const signerOf = (user: number): Wallet =>
  new Wallet(HDNodeWallet.fromMnemonic(phrase, `m/44'/60'/1'/0/${user}`).privateKey)

const factories = Array.from({ length: size }, (_, user) =>
  factoryOf(
    {
      deployer: devKeys.deployer.address,
      owner: devKeys.factoryOwner.address,
      beaconOwner: devKeys.beaconOwner.address,
      sponsor: devKeys.sponsor.address
    },
    `user ${user}`
  )
)

const startNode: StartNode = (options, prepare) =>
  startPrepared("shared", options, async (provider) => {
    await prepare(provider)
    const payer = new NonceManager(devKeys.faucet.connect(provider))
    for (const [user, { initCode, salt }] of factories.entries()) {
      await deploy(payer, initCode, salt)
      await provider.send("anvil_setBalance", [signerOf(user).address, "0x21e19e0c9bab2400000"])
    }
  })

/** Uses the pepper of development stacks. */
const issue = Effect.map(Wiring.issueKey(Redacted.make("development only, public")), ({ hash, key }) => ({
  hash,
  key: Redacted.value(key)
}))

type Network = Readonly<Record<string, unknown>>

interface User {
  readonly factory: string
  readonly apiKeys: Readonly<Record<Tier, string>>
  readonly signer: Wallet
}

interface Shared {
  readonly service: DevService.DevService
  readonly users: Array<User>
}

const begin = async (network: Network): Promise<Shared> => {
  const issued = await Effect.runPromise(
    Effect.forEach(factories, ({ address }) =>
      Effect.map(Effect.all({ free: issue, pro: issue, enterprise: issue }), (keys) => ({
        factory: address,
        keys
      }))
    )
  )
  const service = await DevService.start({
    startNode,
    network,
    config: {
      accounts: issued.flatMap(({ factory, keys }, user) =>
        tiers.map((tier) => ({
          id: `${tier}${user}`,
          name: tier,
          tier,
          keys: [{ hash: keys[tier].hash }],
          ...(tier === "enterprise" && { networks: [{ chainId: 31337, factory }] })
        }))
      ),
      signers: issued.map((_, user) => ({
        accounts: tiers.map((tier) => `${tier}${user}`),
        clientId: "dev",
        versionId: "1",
        privateKey: signerOf(user).privateKey,
        shared: true
      }))
    }
  })
  const users = issued.map(({ factory, keys: { enterprise, free, pro } }, user) => ({
    factory,
    apiKeys: { enterprise: enterprise.key, free: free.key, pro: pro.key },
    signer: signerOf(user)
  }))
  return { service, users }
}

/** The idle services of this process. They outlive test files and stop with the process. */
const idle = new Map<string, Shared>()
const ended = () => process.exit()

/**
 * A service as its user sees it, with accounts, signer and factory without previous users. Its chain only moves
 * forward. `stop` releases the service to the next user.
 */
export const start = async (network: Network = {}): Promise<DevService.DevService> => {
  if (!process.listeners("SIGTERM").includes(ended)) process.once("SIGTERM", ended)
  const key = JSON.stringify(network)
  // No automatic fee bump during a test.
  const shared = idle.get(key) ?? (await begin({ bumpAfterMillis: 3_600_000, ...network }))
  idle.delete(key)
  const { service, users } = shared
  const user = users.pop()
  if (user === undefined) throw new Error("the service has no user left")
  const before = service.log().length
  return DevService.on({
    info: {
      ...service.info,
      apiKeys: user.apiKeys,
      settings: { ...service.info.settings, factory: user.factory }
    },
    provider: service.provider,
    signer: user.signer.connect(service.provider),
    log: () => service.log().slice(before),
    stop: async () => {
      await service.automine(true)
      if (users.length > 0 && !idle.has(key)) idle.set(key, shared)
      else await service.stop()
    }
  })
}

/** The service of a test file. */
export const perFile = (network?: Network): DevService.DevService => use(() => start(network), 120_000)

/** A service whose chain starts with the test file, so that the reference shows the same values in every run. */
export const aloneInFile = (): DevService.DevService => use(DevService.start, 120_000)
