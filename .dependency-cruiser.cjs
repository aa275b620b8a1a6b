/**
 * The storeys of the house, as import rules. Each storey may look down, none may look up:
 * domain < application < adapters < hosts. Every rule has a planted breach in test/house that proves that it fires.
 */

/** Modules of npm packages, by their path below node_modules. */
const npm = (pattern) => `node_modules/${pattern}`

const anyNpm = npm("")

/** Modules of `effect` without fibers, clock, randomness or other effects. */
const pureEffectModules = [
  "Array",
  "BigDecimal",
  "BigInt",
  "Boolean",
  "Brand",
  "Chunk",
  "Data",
  "Equal",
  "Equivalence",
  "Exit",
  "Function",
  "Hash",
  "HashMap",
  "HashSet",
  "Iterable",
  "JsonSchema",
  "Match",
  "Number",
  "Option",
  "Order",
  "Pipeable",
  "Predicate",
  "Record",
  "Result",
  "Schema",
  "SchemaAST",
  "SchemaGetter",
  "SchemaIssue",
  "SchemaTransformation",
  "String",
  "Struct",
  "Tuple",
  "Types",
  "encoding/\\w+"
]

const pureEffect = npm(`effect/dist/(${pureEffectModules.join("|")})\\.js$`)
const pureEthers = npm("ethers/lib\\.esm/(abi|address|crypto|hash|utils)/index\\.js$")
const noble = npm("@noble/")

/** Effect itself. Its folders are technologies: HTTP, SQL, sockets, the command line, the cluster. */
const effect = npm("effect/dist/([A-Z]\\w*|encoding/\\w+)\\.js$")

/** What each adapter's technology is made of. An adapter that is missing here gets `effect` alone. */
const sdks = {
  cluster: [npm("effect/dist/(cluster|sql)/"), npm("@effect/sql-pg/")],
  "json-rpc": [npm("undici/")],
  "keys/AwsKms": [npm("@aws-sdk/client-kms/")],
  "keys/AzureKeyVault": [npm("@azure/(identity|keyvault-keys)/")],
  "keys/PrivateKeys": [pureEthers, npm("ethers/lib\\.esm/wallet/index\\.js$")],
  "keys/fireblocks": [npm("@fireblocks/ts-sdk/")],
  "keys/gcp-kms": [npm("(@google-cloud/kms|undici)/")],
  "keys/pkcs11": [npm("pkcs11js/")],
  memory: [pureEthers],
  native: [npm("(hash-wasm|secp256k1)/")],
  redis: [npm("ioredis/")],
  sql: [npm("effect/dist/(reactivity|sql)/"), npm("@effect/sql-pg/")]
}

const forbid = (name, comment, from, to) => ({ name, comment, severity: "error", from, to })

/** Entry points: nothing imports them. */
const roots =
  "^src/(index|hosts/(node/main|library/(Http|Promise)|cli/castellan)|client/(Client|Passkeys))\\.ts$"

module.exports = {
  forbidden: [
    forbid(
      "domain-looks-down",
      "The domain knows no other storey.",
      { path: "^src/domain/" },
      { path: "^(src|tools|test|contracts|bench)/", pathNot: "^src/domain/" }
    ),
    forbid(
      "domain-is-pure",
      "The domain imports values and functions only: pure modules of effect, ethers or @noble.",
      { path: "^src/domain/" },
      { path: anyNpm, pathNot: [pureEffect, pureEthers, noble] }
    ),
    forbid(
      "domain-without-node",
      "The domain runs anywhere: no node core.",
      { path: "^src/domain/" },
      { dependencyTypes: ["core"] }
    ),
    forbid(
      "application-looks-down",
      "Use cases and engine know the domain and the ports, never an adapter or a host.",
      { path: "^src/application/" },
      { path: "^(src|tools|test|contracts|bench)/", pathNot: "^src/(application|domain)/" }
    ),
    forbid(
      "application-is-effect-only",
      "Technology belongs in an adapter: no providers, HTTP, SQL, sockets or cluster here.",
      { path: "^src/application/" },
      { path: anyNpm, pathNot: effect }
    ),
    forbid(
      "application-without-node",
      "Use cases run wherever Effect runs: no node core.",
      { path: "^src/application/" },
      { dependencyTypes: ["core"] }
    ),
    forbid(
      "ports-stand-alone",
      "A port is named by domain values; use cases and engine depend on it, not it on them.",
      { path: "^src/application/ports/" },
      { path: "^src/application/", pathNot: "^src/application/ports/" }
    ),
    forbid(
      "prepare-stands-below",
      "Intake and lanes both make ops by it: it knows neither, and no endpoint.",
      { path: "^src/application/prepare/" },
      { path: "^src/application/(endpoints|intake|lanes|operate)/" }
    ),
    forbid(
      "intake-knows-no-lane",
      "Intake and lanes meet in the journal, and in a bell that whoever wires them gives to both.",
      { path: "^src/application/intake/" },
      {
        path: "^src/application/",
        pathNot:
          "^src/application/(chain|failures|intake|keys|observe|payers|policies|ports|prepare|request|runtime|tenants)/"
      }
    ),
    forbid(
      "answers-stand-below",
      "Intake and lanes both tell of what ends: who answers knows neither, and no endpoint.",
      { path: "^src/application/answers/" },
      { path: "^src/application/(endpoints|intake|lanes|operate|prepare)/" }
    ),
    forbid(
      "lanes-without-intake",
      "What is accepted goes on without the process that accepted it: intake and lanes meet in the journal.",
      { path: "^src/application/lanes/" },
      { path: "^src/application/(endpoints|intake)/" }
    ),
    forbid(
      "adapter-looks-down",
      "An adapter knows the ports, the runtime and the domain: no use case, no engine, no other adapter, no host.",
      // A key provider is an adapter of its own: a file or a folder.
      { path: "^src/adapters/(keys/[^/.]+|(?!keys/)[^/]+)[/.]" },
      {
        path: "^(src|tools|test|contracts|bench)/",
        pathNot: ["^src/(domain|application/(ports|runtime))/", "^src/adapters/$1[/.]"]
      }
    ),
    ...Object.entries(sdks).map(([adapter, allowed]) =>
      forbid(
        `adapter-${adapter}-own-sdk`,
        "One technology per adapter.",
        { path: `^src/adapters/${adapter}[/.]` },
        { path: anyNpm, pathNot: [effect, ...allowed] }
      )
    ),
    forbid(
      "adapter-declares-its-sdk",
      "A new adapter names its packages in the table of this file.",
      { path: "^src/adapters/", pathNot: `^src/adapters/(${Object.keys(sdks).join("|")})[/.]` },
      { path: anyNpm, pathNot: effect }
    ),
    forbid(
      "adapters-only-through-wiring",
      "One place decides which technology stands behind a port.",
      {
        path: "^src/(?!adapters/)",
        pathNot: "^src/(hosts/(Running|Wiring|config/KeyProviders)|Castellan)\\.ts$"
      },
      { path: "^src/adapters/" }
    ),
    forbid(
      "key-providers-only",
      "A kind of key provider knows the technology of its keys.",
      { path: "^src/hosts/config/" },
      { path: "^src/adapters/", pathNot: "^src/adapters/keys/" }
    ),
    forbid(
      "key-technologies-load-late",
      "Their SDKs are large and optional: imported when one of the kind is configured.",
      { path: "^src/hosts/" },
      { path: "^src/adapters/(keys/(?!PrivateKeys)|redis/)", dynamic: false }
    ),
    forbid(
      "wiring-serves-any-host",
      "Configuration and wiring know no particular host.",
      { path: "^src/hosts/([^/]+\\.ts$|config/)" },
      { path: "^src/hosts/(cli|console|http|library/(Http|HttpApp|Promise|WebHandler)\\.|node|service)" }
    ),
    forbid(
      "http-serves-any-process",
      "The HTTP front knows neither the process that serves it nor the composition root.",
      { path: "^src/hosts/http/" },
      { path: "^src/hosts/", pathNot: "^src/hosts/http/" }
    ),
    forbid(
      "service-without-command-line",
      "The service process carries nothing of the development and command-line tools.",
      { path: "^src/hosts/", pathNot: "^src/hosts/cli/" },
      { path: "^src/hosts/cli/" }
    ),
    forbid(
      "surface-loads-late",
      "To import the package loads no technology: its layer does, each adapter when it is needed.",
      { path: "^src/(index|Castellan|hosts/library/\\w+Options)\\.ts$" },
      { path: ["^src/adapters/", anyNpm], pathNot: effect, dynamic: false, dependencyTypesNot: ["type-only"] }
    ),
    forbid(
      "surface-without-hosts",
      "What embedders get from the package's root is no process, no port and no command line.",
      { path: "^src/(index|Castellan|hosts/library/\\w+Options)\\.ts$" },
      { path: "^src/hosts/", pathNot: "^src/hosts/(library/\\w+Options\\.|config/|Running\\.)" }
    ),
    forbid(
      "source-knows-no-test",
      "What ships does not lean on tests or build scripts.",
      { path: "^src/" },
      { path: "^(tools|test|bench|contracts)/" }
    ),
    forbid(
      "no-barrels",
      "Barrels load whole libraries: start-up time and memory are budgeted.",
      { path: "^src/", pathNot: "^src/hosts/cli/" },
      {
        path: [
          npm("effect/dist/index\\.js$"),
          npm("effect/dist/[a-z-]+/index\\.js$"),
          npm("ethers/lib\\.esm/(index|ethers)\\.js$"),
          npm("@effect/[^/]+/dist/index\\.js$")
        ]
      }
    ),
    forbid(
      "no-development-packages",
      "Only the development commands may lean on what production does not install.",
      { path: "^src/" },
      // What is opt-in is for development as well.
      { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["npm-peer"] }
    ),
    forbid(
      "client-is-not-bundled",
      "The client runs in browsers as it is: it loads no package.",
      { path: "^src/client/" },
      { path: anyNpm, dependencyTypesNot: ["type-only"] }
    ),
    forbid(
      "declared-packages-only",
      "A package that is not in package.json is there by accident.",
      { path: "^(src|tools|test|contracts|bench)/" },
      // What "peerDependenciesMeta" has is taken for no package as well.
      { dependencyTypes: ["npm-no-pkg", "npm-unknown"], dependencyTypesNot: ["npm-peer"] }
    ),
    forbid(
      "resolvable",
      "An import that leads nowhere.",
      // Compiled in a folder where the generated module is.
      { pathNot: "^test/client/generated/tour\\.ts$" },
      { couldNotResolve: true }
    ),
    forbid("no-cycles", "A circle has no bottom storey.", {}, { circular: true }),
    {
      ...forbid(
        "no-folder-cycles",
        "Folders are read from top to bottom, too.",
        { path: "^src/" },
        { circular: true }
      ),
      scope: "folder"
    },
    forbid(
      "no-orphans",
      "A module that nothing leads to and that leads nowhere; scripts are for browsers.",
      { path: "^src/", pathNot: [roots, "\\.(d\\.ts|js)$"], orphan: true },
      {}
    )
  ],
  options: {
    doNotFollow: { path: anyNpm },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default"],
      mainFields: ["module", "main"]
    }
  }
}
