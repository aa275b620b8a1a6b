import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import openapiTypes, { astToString } from "openapi-typescript"
import ts from "typescript"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as DevService from "../../support/http/DevService.js"
import { root } from "../../support/process/Program.js"
import { use } from "../../support/Use.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-generated-"))
/** Fields with a default are optional in a request: --default-non-nullable=false on the command line. */
const options = { defaultNonNullable: false }

const source = join(folder, "tour.ts")

const service = use(DevService.start)
beforeAll(async () => {
  const document = await (await fetch(`${service.info.baseUrl}/openapi.json`)).text()
  writeFileSync(join(folder, "schema.ts"), astToString(await openapiTypes(document, options)))
  writeFileSync(source, readFileSync(fileURLToPath(new URL("tour.ts", import.meta.url))))
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
})

const program = (file: string) =>
  ts.createProgram([file], {
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    types: [],
    lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022
  })

const problems = (file: string): ReadonlyArray<string> =>
  ts
    .getPreEmitDiagnostics(program(file))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"))

describe("a client generated from /openapi.json", () => {
  it("compiles, and does not with a field that the document has not", () => {
    expect(problems(source)).toEqual([])
    const wrong = join(folder, "wrong.ts")
    writeFileSync(wrong, readFileSync(source, "utf8").replaceAll("walletCustody", "custodyOfWallet"))
    expect(problems(wrong).join("\n")).toContain("custodyOfWallet")
  })

  it("a generated client runs the tour from a salt to a token", async () => {
    program(source).emit()
    const { tour }: { readonly tour: (place: unknown) => Promise<unknown> } = await import(
      pathToFileURL(join(folder, "tour.js")).href
    )
    const { apiKeys, baseUrl, chainId, paymaster, settings, token } = service.info
    const done = (await tour({ baseUrl, apiKey: apiKeys.pro, settings, paymaster, token })) as {
      readonly txHash: string
    }
    expect(done).toEqual({
      wallet: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      created: 1,
      exists: true,
      sameTransaction: true,
      receipts: [done.txHash],
      txHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      balance: "1000",
      state: "final",
      chains: expect.arrayContaining([chainId]),
      code: "invalid_request"
    })
  })
})
