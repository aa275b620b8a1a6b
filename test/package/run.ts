import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core"
import { problemKindInfo } from "@arethetypeswrong/core/problems"
import { publint } from "publint"
import { formatMessage } from "publint/utils"
import * as Anvil from "../../src/hosts/cli/dev/Anvil.js"
import * as PublicApi from "../../tools/PublicApi.js"
import * as Lockfile from "../support/Lockfile.js"
import * as Port from "../support/process/Port.js"
import * as Installed from "./Installed.js"
import * as Readme from "./Readme.js"
import * as Served from "./Served.js"

/**
 * `npm run test:package`: packs the package, installs it in an empty folder next to its declared packages, and uses it
 * there as others will: its command, every path, its types under both resolutions.
 */

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "castellan-package-"))
const modules = join(folder, "node_modules")
const paths = [...PublicApi.sources().keys()]
const problems: Array<string> = []

const compiler = join(root, "node_modules/typescript/bin/tsc")
const run = (command: string, args: ReadonlyArray<string>) => Installed.run(command, args, folder)

const expect = (what: string, { ok, said }: { readonly ok: boolean; readonly said: string }) => {
  console.log(`${ok ? "ok    " : "FAILED"} ${what}`)
  if (!ok) problems.push(`${what}\n${said}`)
}

const { files, tarball } = Installed.install(folder)

const foreign = files.filter(({ path }) => !/^(dist|docs|contracts\/artifacts)\/|^[^/]+$/.test(path))
expect("the package holds what is built, the documents and the contracts", {
  ok:
    foreign.length === 0 &&
    ["dist/index.d.ts", "dist/hosts/http/docs/swagger-ui/swagger-ui-bundle.js"].every((built) =>
      files.some(({ path }) => path === built)
    ),
  said: foreign.map(({ path }) => path).join("\n")
})

const publishing = await publint({ pkgDir: join(modules, "castellan"), strict: true, pack: false })
const manifest = JSON.parse(readFileSync(join(modules, "castellan/package.json"), "utf8"))
expect("publint finds nothing", {
  ok: publishing.messages.length === 0,
  said: publishing.messages.map((message) => formatMessage(message, manifest)).join("\n")
})

/** The package is of ES modules; resolutions that know no `exports`, or `require`, are not served. */
const served = new Set(["node16-esm", "bundler"])
const types = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(tarball))))
const wrong =
  types.types === false
    ? ["there are no types"]
    : types.problems.flatMap((problem) =>
        "resolutionKind" in problem && !served.has(problem.resolutionKind)
          ? []
          : [`${problemKindInfo[problem.kind].title}: ${JSON.stringify(problem)}`]
      )
expect("the types are those of the modules", { ok: wrong.length === 0, said: wrong.join("\n") })

const megabytes = Installed.bytes(modules) / 1_000_000
expect(`the installed packages take ${megabytes.toFixed(1)} MB, at most 109`, {
  ok: megabytes > 40 && megabytes <= 109,
  said: `${megabytes} MB`
})

expect("npm ls finds every declared package and no other", run("npm", ["ls", "--all"]))
const copies = run("npm", ["ls", "effect", "--all", "--parseable"])
expect("a program's own effect is castellan's", {
  ok: copies.ok && copies.stdout.trim().split("\n").length === 1,
  said: copies.said
})

expect("npx castellan --help", run("npx", ["--no", "castellan", "--help"]))

expect(
  "docs/install.md: its two commands lead to an executed op",
  await Readme.follow("On anvil", folder, {
    PATH: `${dirname(Anvil.binary())}${delimiter}${process.env.PATH}`
  })
)

expect(
  "castellan serve --config castellan.json runs the service in an empty folder",
  await Served.run(folder)
)

const module = (text: string) => run(process.execPath, ["--input-type=module", "--eval", text])
expect(
  "every path can be imported, or names the opt-in package that is missing",
  module(`for (const path of ${JSON.stringify(paths)})
    await import(path).catch((error) => {
      const [, missing] = /^Cannot find package '(.*?)' imported from /.exec(error.message) ?? []
      if (!${JSON.stringify(Lockfile.optIn)}.includes(missing)) throw error
    })`)
)
expect(
  "lazily loaded modules load",
  module(
    `for (const part of ["adapters/cluster/Replicas", "hosts/console/Admin"])
      await import(new URL("dist/" + part + ".js", import.meta.resolve("castellan/package.json")))`
  )
)
const port = await Port.free()
writeFileSync(
  join(folder, "service.json"),
  JSON.stringify({
    profile: "development",
    listen: { host: "127.0.0.1", port },
    database: { path: "service.sqlite" },
    keyPepper: "a pepper of many bytes",
    accounts: [],
    networks: []
  })
)
expect(
  "the service's process starts, is ready, and ends on its signal",
  module(`process.env.CASTELLAN_CONFIG = "service.json"
    await import(new URL("dist/hosts/node/main.js", import.meta.resolve("castellan/package.json")))
    const isReady = () => fetch("http://127.0.0.1:${port}/health/ready").then(({ status }) => status === 200, () => false)
    while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 50))
    process.kill(process.pid, "SIGTERM")`)
)
expect(
  "nothing else can be imported",
  module(`for (const path of ["castellan/dist/index.js", "castellan/adapters/sql/Seal", "castellan/hosts/Wiring"])
    await import(path).then(
      () => { throw new Error(path) },
      (error) => { if (error.code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") throw error }
    )`)
)
expect(
  "importing the root loads no database and no key technology",
  module(`import { registerHooks } from "node:module"
    const loaded = []
    registerHooks({
      load: (url, context, next) => {
        if (/^node:sqlite|node_modules.(pg|undici|hash-wasm|secp256k1|@effect|effect.dist.(cli|cluster|http-api|sql))\\b/.test(url)) loaded.push(url)
        return next(url, context)
      }
    })
    await import("castellan")
    if (loaded.length > 0) throw new Error(loaded.join())
    await import("castellan/adapters/Sqlite")
    if (!loaded.includes("node:sqlite")) throw new Error("nothing is seen")`)
)
expect(
  "the library works with the program's effect",
  module(`import * as Sqlite from "castellan/adapters/Sqlite"
    import * as SqlJournal from "castellan/adapters/SqlJournal"
    import * as Effect from "effect/Effect"
    import * as Layer from "effect/Layer"
    import * as Redacted from "effect/Redacted"
    const journal = SqlJournal.layer({ sealingKey: Redacted.make(new Uint8Array(32).fill(1)) }).pipe(Layer.provide(Sqlite.layer({ filename: ":memory:" })))
    await Effect.runPromise(Effect.scoped(Layer.build(journal)))`)
)

const program = readFileSync(join(root, "test/embed/program.ts"), "utf8")
const all = paths.map((path, n) => `import * as I${n} from "${path}"`).join("\n")
writeFileSync(join(folder, "program.ts"), program)
writeFileSync(join(folder, "all.ts"), `${all}\nexport const all = [${paths.map((_, n) => `I${n}`)}]\n`)
writeFileSync(
  join(folder, "client.ts"),
  `import { make, type ExecuteResult, type Operation, type Outcome, type Settings } from "castellan/client"
  export const pay = async (operation: Operation, settings: Settings): Promise<ReadonlyArray<Outcome>> => {
    const client = make({ baseUrl: "https://castellan.example", apiKey: "key" })
    const result: ExecuteResult = await client.execute({ operations: [operation], settings })
    // @ts-expect-error: the element is in returnData[0][0]
    const error: unknown = result.returnData[0].error
    const { requestId } = await client.execute({ operations: [operation], settings }, { async: true })
    return (await client.waitFor<"execute">(requestId)).outcomes
  }
`
)
const nodeTypes = join(modules, "@types/node")
mkdirSync(dirname(nodeTypes), { recursive: true })
if (!existsSync(nodeTypes)) symlinkSync(join(root, "node_modules/@types/node"), nodeTypes)
for (const [module, resolution] of [
  ["node16", "node16"],
  ["esnext", "bundler"]
]) {
  const compilerOptions = {
    module,
    moduleResolution: resolution,
    target: "es2022",
    lib: ["es2023"],
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    declaration: true,
    outDir: "out"
  }
  const file = `tsconfig.${resolution}.json`
  writeFileSync(
    join(folder, file),
    JSON.stringify({ compilerOptions, files: ["program.ts", "client.ts", "all.ts"] })
  )
  expect(
    `the program of docs/library.md type-checks with ${resolution}`,
    run(process.execPath, [compiler, "-p", file])
  )
}

/** Modules whose types need an opt-in package, which their importers install. */
const ofOptIn = new Set(["castellan/adapters/AzureKeyVault", "castellan/adapters/Fireblocks"])
writeFileSync(
  join(folder, "strict.ts"),
  paths.flatMap((path, n) => (ofOptIn.has(path) ? [] : [`export * as I${n} from "${path}"\n`])).join("")
)
const strict = [
  ["--module", "node16", "--target", "es2022", "--lib", "es2023,dom", "--types", "node", "--strict"],
  ["--skipLibCheck", "false", "--noEmit", "strict.ts"]
].flat()
expect("the declarations need no package that is not installed", run(process.execPath, [compiler, ...strict]))

mkdirSync(join(modules, "@hono"))
symlinkSync(join(root, "node_modules/@hono/node-server"), join(modules, "@hono/node-server"))
for (const example of ["effect.ts", "node.ts"])
  writeFileSync(join(folder, example), readFileSync(join(root, "examples", example)))
expect(
  "an Effect server with packages of its own type-checks",
  run(process.execPath, [
    compiler,
    ...strict.map((option) => (option === "strict.ts" ? "effect.ts" : option === "false" ? "true" : option)),
    "--exactOptionalPropertyTypes"
  ])
)
expect(
  "a program's own Effect server can serve castellan/http",
  module(`import * as HttpRouter from "effect/http/HttpRouter"
    import * as OpenApi from "effect/http-api/OpenApi"
    import * as Castellan from "castellan"
    import * as Http from "castellan/http"
    import * as Effect from "effect/Effect"
    import * as Layer from "effect/Layer"
    const told = Object.keys(OpenApi.fromApi(Http.api).paths)
    if (!told.includes("/execute")) throw new Error(told.join())
    const address = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
    const layer = Castellan.layer({
      networks: [{ chainId: 31337, rpc: "http://127.0.0.1:9", factory: address, beaconAdminAddress: address }],
      signers: [], systemKeys: {}, egress: { allowLoopback: true }
    })
    const tenants = Layer.succeed(Castellan.Tenants.Tenants, { authenticate: () => Effect.succeed(null) })
    const routes = Layer.unwrap(
      Effect.map(Http.httpApp({ basePath: "/wallets" }), (app) =>
        HttpRouter.addAll([HttpRouter.route("*", "/*", app)], { prefix: "/wallets" }))
    ).pipe(Layer.provide(Layer.merge(layer, tenants)))
    const { dispose, handler } = HttpRouter.toWebHandler(routes)
    const ask = async (path, init) => {
      const answer = await handler(new Request("http://localhost/wallets" + path, init))
      return answer.status + (await answer.text()).slice(0, 0)
    }
    const headers = { "content-type": "application/json", "x-api-key": "none" }
    const said = [await ask("/openapi.json"), await ask("/execute", { method: "POST", headers, body: "{}" })]
    await dispose()
    if (said.join() !== "200,401") throw new Error(said.join())`)
)

rmSync(folder, { recursive: true })
for (const problem of problems) console.error(`\n${problem}`)
process.exitCode = problems.length === 0 ? 0 : 1
