/** A file to plant: path in the tree, and text. */
export type Planted = readonly [path: string, text: string]

/** The first file of a breach breaks the rule; the others support it. */
export interface Breach {
  readonly rule: string
  /** The folder that breaks the rule, if the breach is a folder. */
  readonly folder?: string
  readonly files: readonly [Planted, ...ReadonlyArray<Planted>]
}

const importing = (...specifiers: ReadonlyArray<string>): string =>
  `${specifiers.map((specifier, n) => `import * as I${n} from "${specifier}"`).join("\n")}\nexport const used = [${specifiers.map((_, n) => `I${n}`).join(", ")}]\n`

const typesOf = (specifier: string): string =>
  `import type * as I from "${specifier}"\nexport type Used = typeof I\n`

const breach = (rule: string, path: string, text: string, ...others: ReadonlyArray<Planted>): Breach => ({
  rule,
  files: [[path, text], ...others]
})

/** Files without a breach: each storey with its permitted imports. */
export const lawful: ReadonlyArray<Planted> = [
  [
    "src/domain/Value.ts",
    importing(
      "effect/Schema",
      "effect/Result",
      "effect/encoding/Base64",
      "ethers/crypto",
      "ethers/abi",
      "./Other.js"
    )
  ],
  ["src/domain/Other.ts", importing("effect/Data", "ethers/utils", "ethers/address", "ethers/hash")],
  ["src/application/ports/Port.ts", importing("effect/Context", "../../domain/Value.js")],
  ["src/application/UseCase.ts", importing("effect/Effect", "./ports/Port.js", "../domain/Value.js")],
  ["src/adapters/json-rpc/Good.ts", importing("node:net", "effect/Layer", "../../application/ports/Port.js")],
  ["src/adapters/memory/Good.ts", importing("effect/Ref", "node:crypto", "../../application/ports/Port.js")],
  ["src/adapters/keys/PrivateKeys.ts", importing("ethers/crypto", "../../application/ports/Port.js")],
  [
    "src/adapters/sql/Good.ts",
    importing("effect/sql/SqlClient", "@effect/sql-pg/PgClient", "../../domain/Value.js")
  ],
  [
    "src/hosts/Wiring.ts",
    importing("../adapters/json-rpc/Good.js", "../adapters/sql/Good.js", "./Config.js")
  ],
  [
    "src/Castellan.ts",
    `${importing("effect/Layer", "./application/UseCase.js")}export const late = () => import("./adapters/sql/Good.js")\n`
  ],
  ["src/hosts/Config.ts", importing("effect/Schema", "node:fs", "../application/ports/Port.js")],
  ["src/hosts/http/Front.ts", importing("effect/http/HttpRouter", "../../application/UseCase.js")],
  ["src/hosts/node/main.ts", importing("../Wiring.js", "../http/Front.js", "node:process")],
  ["src/hosts/cli/dev.ts", importing("../Wiring.js", "../node/main.js", "ethers", "node:child_process")]
]

export const breaches: ReadonlyArray<Breach> = [
  breach("domain-looks-down", "src/domain/KnowsPort.ts", importing("../application/ports/Port.js")),
  breach("domain-looks-down", "src/domain/KnowsPortType.ts", typesOf("../application/ports/Port.js")),
  breach("domain-is-pure", "src/domain/RunsEffects.ts", importing("effect/Effect")),
  breach("domain-is-pure", "src/domain/TalksToNode.ts", importing("ethers/providers")),
  breach("domain-without-node", "src/domain/ReadsFiles.ts", importing("node:fs")),
  breach("application-looks-down", "src/application/KnowsAdapter.ts", typesOf("../adapters/sql/Good.js")),
  ...[
    "effect/cli/Command",
    "effect/cluster/Sharding",
    "effect/http/HttpClient",
    "effect/http-api/HttpApi",
    "effect/process/ChildProcess",
    "effect/socket/Socket",
    "effect/sql/SqlClient",
    "@effect/sql-pg/PgClient"
  ].map((technology, n) =>
    breach("application-is-effect-only", `src/application/Uses${n}.ts`, typesOf(technology))
  ),
  breach("application-without-node", "src/application/ReadsFiles.ts", importing("node:fs")),
  breach("answers-stand-below", "src/application/answers/KnowsLane.ts", typesOf("../lanes/Ring.js"), [
    "src/application/lanes/Ring.ts",
    importing("effect/Effect")
  ]),
  breach("lanes-without-intake", "src/application/lanes/KnowsIntake.ts", typesOf("../intake/Room.js"), [
    "src/application/intake/Room.ts",
    importing("effect/Effect")
  ]),
  breach("ports-stand-alone", "src/application/ports/KnowsUseCase.ts", typesOf("../UseCase.js")),
  breach("prepare-stands-below", "src/application/prepare/KnowsLane.ts", typesOf("../lanes/Lane.js"), [
    "src/application/lanes/Lane.ts",
    importing("effect/Effect")
  ]),
  breach("intake-knows-no-lane", "src/application/intake/Run.ts", typesOf("../lanes/Bell.js"), [
    "src/application/lanes/Bell.ts",
    importing("effect/Effect")
  ]),
  breach("adapter-looks-down", "src/adapters/memory/KnowsSql.ts", importing("../sql/Good.js")),
  breach("adapter-looks-down", "src/adapters/keys/pkcs11/KnowsFile.ts", importing("../PrivateKeys.js")),
  breach("adapter-json-rpc-own-sdk", "src/adapters/json-rpc/Queries.ts", importing("effect/sql/SqlClient")),
  breach("adapter-memory-own-sdk", "src/adapters/memory/Queries.ts", typesOf("effect/sql/SqlClient")),
  breach("adapter-redis-own-sdk", "src/adapters/redis/Calls.ts", importing("pkcs11js")),
  breach(
    "adapter-keys/pkcs11-own-sdk",
    "src/adapters/keys/pkcs11/Calls.ts",
    importing("@aws-sdk/client-kms")
  ),
  breach("adapter-keys/AwsKms-own-sdk", "src/adapters/keys/AwsKms.ts", importing("@google-cloud/kms")),
  breach(
    "adapter-keys/gcp-kms-own-sdk",
    "src/adapters/keys/gcp-kms/Calls.ts",
    importing("@azure/keyvault-keys")
  ),
  breach(
    "adapter-keys/AzureKeyVault-own-sdk",
    "src/adapters/keys/AzureKeyVault.ts",
    importing("@aws-sdk/client-kms")
  ),
  breach("adapter-native-own-sdk", "src/adapters/native/Calls.ts", importing("pkcs11js")),
  breach("adapter-cluster-own-sdk", "src/adapters/cluster/Keys.ts", importing("pkcs11js")),
  breach("adapter-keys/fireblocks-own-sdk", "src/adapters/keys/fireblocks/Calls.ts", importing("pkcs11js")),
  breach(
    "adapter-keys/PrivateKeys-own-sdk",
    "src/adapters/keys/PrivateKeys/Dials.ts",
    importing("ethers/providers")
  ),
  breach("adapter-sql-own-sdk", "src/adapters/sql/Hashes.ts", importing("ethers/crypto")),
  breach("adapter-declares-its-sdk", "src/adapters/keys/Novel.ts", importing("ethers/crypto")),
  breach("adapters-only-through-wiring", "src/hosts/http/Stores.ts", importing("../../adapters/sql/Good.js")),
  breach("key-providers-only", "src/hosts/config/Stores.ts", importing("../../adapters/sql/Good.js")),
  breach(
    "key-technologies-load-late",
    "src/hosts/KeysAtOnce.ts",
    importing("../adapters/keys/gcp-kms/Good.js"),
    ["src/adapters/keys/gcp-kms/Good.ts", importing("effect/Effect")]
  ),
  breach("wiring-serves-any-host", "src/hosts/KnowsHttp.ts", importing("./http/Front.js")),
  breach("http-serves-any-process", "src/hosts/http/KnowsWiring.ts", importing("../Wiring.js")),
  breach("service-without-command-line", "src/hosts/node/KnowsTools.ts", importing("../cli/dev.js")),
  breach("surface-loads-late", "src/index.ts", importing("./adapters/memory/Good.js")),
  breach("surface-loads-late", "src/hosts/library/AsksOptions.ts", importing("effect/http/HttpClient")),
  breach("surface-without-hosts", "src/hosts/library/ServesOptions.ts", importing("../http/Front.js")),
  breach("source-knows-no-test", "src/hosts/http/KnowsTest.ts", importing("../../../test/Support.js"), [
    "test/Support.ts",
    importing("effect/Effect")
  ]),
  breach("no-barrels", "src/application/LoadsEffect.ts", importing("effect")),
  breach("no-barrels", "src/hosts/http/LoadsHttp.ts", importing("effect/http")),
  breach("no-barrels", "src/hosts/node/LoadsNode.ts", importing("@effect/platform-node")),
  breach("no-barrels", "src/adapters/json-rpc/LoadsEthers.ts", importing("ethers")),
  breach("no-development-packages", "src/hosts/http/Checks.ts", importing("fast-check")),
  breach("client-is-not-bundled", "src/client/Hashes.ts", importing("ethers/crypto")),
  breach("declared-packages-only", "src/hosts/http/Borrows.ts", importing("acorn")),
  breach("resolvable", "src/hosts/http/Dangles.ts", importing("./Nowhere.js")),
  breach("no-cycles", "src/domain/Egg.ts", importing("./Hen.js"), ["src/domain/Hen.ts", typesOf("./Egg.js")]),
  {
    rule: "no-folder-cycles",
    folder: "src/domain/under",
    files: [
      ["src/domain/under/Floor.ts", importing("../over/Stairs.js")],
      ["src/domain/over/Roof.ts", importing("../under/Cellar.js")],
      ["src/domain/over/Stairs.ts", "export const stairs = 1\n"],
      ["src/domain/under/Cellar.ts", "export const cellar = 1\n"]
    ]
  },
  breach("no-orphans", "src/hosts/http/Alone.ts", "export const alone = 1\n")
]
