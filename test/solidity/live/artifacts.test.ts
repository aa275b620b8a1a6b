import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"

test("every contract fits into the code size limit of 24,576 bytes", () => {
  const folder = fileURLToPath(new URL("../../../contracts/artifacts/", import.meta.url))
  for (const file of readdirSync(folder)) {
    const { deployedBytecode }: { deployedBytecode: string } = JSON.parse(readFileSync(folder + file, "utf8"))
    expect((deployedBytecode.length - 2) / 2, file).toBeLessThanOrEqual(24_576)
  }
})
