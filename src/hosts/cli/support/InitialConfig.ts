/** The first configuration of a service: its text with comments, and its secrets. */

/** Example of a provider's entry, and the form in which it names keys. Options are the reader's to replace. */
interface ProviderExample {
  readonly options: Readonly<Record<string, unknown>>
  readonly key: (role: string) => string
}

export const providers: Readonly<Record<string, ProviderExample>> = {
  "aws-kms": {
    options: { region: "eu-central-1" },
    key: (role) => `arn:aws:kms:eu-central-1:111122223333:key/${role}`
  },
  "azure-kv": {
    options: {
      vaultUrl: "https://NAME.vault.azure.net",
      credentials: {
        tenantId: "00000000-0000-4000-8000-000000000000",
        clientId: "00000000-0000-4000-8000-000000000000",
        clientSecret: { file: "secrets/azure-client" }
      }
    },
    key: (role) => `${role}/VERSION`
  },
  "gcp-kms": {
    options: { credentialsFile: "secrets/gcp.json" },
    key: (role) => `projects/NAME/locations/REGION/keyRings/castellan/cryptoKeys/${role}/cryptoKeyVersions/1`
  },
  pkcs11: {
    options: {
      module: "/usr/lib/softhsm/libsofthsm2.so",
      token: "castellan",
      pin: { file: "secrets/hsm-pin" }
    },
    key: (role) => role
  },
  fireblocks: {
    options: {
      apiKey: { file: "secrets/fireblocks-api-key" },
      secretKey: { file: "secrets/fireblocks.key" }
    },
    key: () => "0/ETH"
  }
}

export const roles = {
  deployer: "authorises deployments of wallets at the factory",
  "service-eoa": "submits operations without a signer: fund it on each chain",
  sponsor: "signs sponsorships of the paymaster",
  signer: "signs and submits for the account: fund it on each chain"
} as const
export type Role = keyof typeof roles

export interface Answers {
  readonly account: string
  /** "file", or a name of `providers`. */
  readonly keys: string
  /** Path of a SQLite file, or "postgres". */
  readonly database: string
  /** Chains with the reference to the URL of their node. */
  readonly chains: ReadonlyArray<{
    readonly chainId: number
    readonly rpc: { readonly file: string } | { readonly env: string }
  }>
}

const json = (value: unknown): string =>
  JSON.stringify(value, null, 1).replace(/\n\s*/g, " ").replaceAll("[ ", "[").replaceAll(" ]", "]")

/** JSON with comments, which `castellan deploy` completes. */
export const text = ({ account, chains, database, keys }: Answers): string => {
  const provider = providers[keys]
  const source = (role: Role) =>
    provider === undefined ? { file: `secrets/${role}` } : { provider: "keys", key: provider.key(role) }
  const asset = keys === "fireblocks" ? { assetId: "ETH" } : { versionId: "1" }
  const signer = {
    accounts: [account],
    clientId: account,
    ...asset,
    ...(provider === undefined ? { privateKey: source("signer") } : source("signer"))
  }
  return `// Configuration of castellan: JSON with comments. Relative paths begin at this file's folder.
// "castellan config check" checks it, "castellan config schema" prints all fields.
{
  "profile": "production",
  // Only this machine reaches the service. Put a proxy that speaks TLS before it.
  "listen": { "host": "127.0.0.1", "port": 8080 },
${
  database === "postgres"
    ? `  // PostgreSQL. The variable holds its URL.
  "database": { "url": { "env": "DATABASE_URL" } },`
    : `  // SQLite, for one process. Replicas need PostgreSQL: { "url": { "env": "DATABASE_URL" } }
  "database": { "path": ${json(database)} },`
}
  // The secret that API keys are hashed with. All keys are invalid after a change.
  "keyPepper": { "file": "secrets/key-pepper" },
  // Console, metrics and switches of the operator, on a port of their own.
  "admin": { "host": "127.0.0.1", "port": 9464, "token": { "file": "secrets/admin-token" } },
  // "castellan keys create ${account}" issues API keys.
  "accounts": [
    { "id": ${json(account)}, "name": ${json(account)}, "tier": "pro", "keys": [] }
  ],
${
  provider === undefined
    ? `  // Private keys in files, for trials. An HSM, a KMS or MPC custody keeps real keys: docs/signers.md.
  "allowPrivateKeys": true,`
    : `  // The place of all keys below. Replace the example's names: docs/signers/${keys}.md.
  "providers": [
    ${json({ kind: keys, name: "keys", ...provider.options })}
  ],`
}
  // Keys that requests name in settings.signer. A signer ${roles.signer}.
  "signers": [
    ${json(signer)}
  ],
  "systemKeys": {
    // It ${roles.deployer}.
    "deployer": ${json(source("deployer"))},
    // It ${roles["service-eoa"]}.
    "serviceEoa": ${json(source("service-eoa"))},
    // It ${roles.sponsor}.
    "sponsor": ${json(source("sponsor"))}
  },
  // "castellan deploy" completes each chain with the addresses of its contracts.
  "networks": [
${chains
  .map(
    ({ chainId, rpc }) => `    {
      "chainId": ${chainId},
      // The URL of your node.
      "rpc": ${json(rpc)}
    }`
  )
  .join(",\n")}
  ]
}
`
}
