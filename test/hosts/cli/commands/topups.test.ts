import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "@effect/vitest"
import { make } from "../../../support/accounts/Castellan.js"
import * as CommandLine from "../../../support/process/CommandLine.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-topups-"))
const castellan = make(folder, { accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [] }] })
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const { json, ok, refused } = CommandLine.lines(castellan.env)

const signer = { clientId: "dev", versionId: "1" }
const target = { to: { salt: "payroll", walletCustody: 1 }, below: "1", upTo: "2", dailyCap: "3" }
const terms = { signer, keep: "0", dailyCap: "9", targets: [target] }

const write = (name: string, value: unknown): string => {
  const path = join(folder, name)
  writeFileSync(path, JSON.stringify(value))
  return path
}

it("terms of a file are shown as they were set, with their author", async () => {
  const file = write("topups.json", terms)
  expect(await refused("topups show acme 8453")).toContain("account acme has no top-ups on chain 8453")
  expect(await ok(`topups set acme 8453 ${file}`)).toContain("command line")
  expect(await json("topups show acme 8453")).toMatchObject({
    chain: "8453",
    topUp: terms,
    by: "command line"
  })
  await ok(`topups set acme 8453 ${write("none.json", { ...terms, targets: [] })}`)
  expect(await json("topups show acme 8453")).toMatchObject({ topUp: { targets: [] } })
})

it("an unknown account, chain or field, and a level that is never reached, are refused", async () => {
  const file = write("topups.json", terms)
  expect(await refused(`topups set globex 8453 ${file}`)).toContain("there is no account called globex")
  expect(await refused(`topups set acme base ${file}`)).toContain("expected a chain id")
  expect(await refused(`topups set acme 8453 ${write("field.json", { ...terms, more: 1 })}`)).toContain(
    "more"
  )
  const never = { ...terms, targets: [{ ...target, upTo: "1" }] }
  expect(await refused(`topups set acme 8453 ${write("never.json", never)}`)).toContain("more than below")
})
