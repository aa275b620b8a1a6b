import { spawnSync } from "node:child_process"
import { existsSync, statfsSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import * as Anvil from "../../../src/hosts/cli/dev/Anvil.js"
import * as Postgres from "../postgres/Programs.js"

/** Something that tests start and that a machine may not have. */
interface Need {
  readonly name: string
  readonly steps: ReadonlyArray<string>
  readonly present: () => boolean
  readonly remedy: string
}

const onPath = (name: string): boolean =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, name)))

const runs = (path: () => string): boolean => {
  try {
    return spawnSync(path(), ["--version"], { stdio: "ignore" }).status === 0
  } catch {
    return false
  }
}

/** Below the folder of npm's package, where its launcher looks too. */
const forge = (): string => {
  const arch = process.arch === "x64" ? "amd64" : process.arch
  const require = createRequire(createRequire(import.meta.url).resolve("@foundry-rs/forge/package.json"))
  return require.resolve(`@foundry-rs/forge-${process.platform}-${arch}/bin/forge`)
}

const apt = (name: string): string => `apt-get install ${name}`
const foundry = (name: string): string =>
  `npm ci, without --omit=optional; it is in the package @foundry-rs/${name}-${process.platform}-*`

const freeBytes = (folder: string): number => {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

const lookMillis = 2_000

/** Watches the disk: the result says how many bytes less were free at one of the moments since then than at first. */
export const watchDisk = (): (() => number) => {
  const atFirst = freeBytes(tmpdir())
  let least = atFirst
  const look = () => {
    least = Math.min(least, freeBytes(tmpdir()))
  }
  setInterval(look, lookMillis).unref()
  return () => {
    look()
    return atFirst - least
  }
}

const needs: ReadonlyArray<Need> = [
  {
    name: "4 GiB of free disk",
    steps: ["integration", "package", "site", "demo", "bench"],
    present: () => freeBytes(tmpdir()) >= 4 * 2 ** 30,
    remedy: `databases, chains and an installed package are written to ${tmpdir()}; TMPDIR=/another/folder`
  },
  {
    name: "anvil",
    steps: ["integration", "demo", "bench"],
    present: () => runs(Anvil.binary),
    remedy: foundry("anvil")
  },
  { name: "forge", steps: ["solidity"], present: () => runs(forge), remedy: foundry("forge") },
  {
    name: "postgres",
    steps: ["integration"],
    present: () => Postgres.folder() !== undefined,
    remedy: apt("postgresql")
  },
  {
    name: "redis-server",
    steps: ["integration"],
    present: () => onPath("redis-server"),
    remedy: apt("redis-server")
  },
  {
    name: "softhsm2-util",
    steps: ["integration"],
    present: () => onPath("softhsm2-util"),
    remedy: apt("softhsm2")
  },
  {
    name: "systemd-analyze",
    steps: ["integration"],
    present: () => onPath("systemd-analyze"),
    remedy: apt("systemd")
  },
  { name: "g++", steps: ["integration"], present: () => onPath("g++"), remedy: apt("g++") },
  {
    name: "chromium",
    steps: ["integration"],
    present: () => existsSync(process.env.CHROMIUM ?? "/usr/bin/chromium"),
    remedy: `${apt("chromium")}, or CHROMIUM=/path/to/it`
  }
]

/** What the steps need and the machine has not, each with the remedy. */
export const missing = (steps: ReadonlyArray<string>): ReadonlyArray<string> =>
  needs
    .filter((need) => need.steps.some((step) => steps.includes(step)) && !need.present())
    .map(({ name, remedy }) => `${name} is missing: ${remedy}`)
