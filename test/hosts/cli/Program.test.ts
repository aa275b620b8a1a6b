import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../../../src/hosts/cli/Program.js"
import * as CommandLine from "../../support/process/CommandLine.js"
import { runSource } from "../../support/process/Program.js"

const said = (...args: ReadonlyArray<string>) => CommandLine.run(args, {})
const refused = (...args: ReadonlyArray<string>) => Effect.flip(said(...args))

describe("help", () => {
  it.effect("help of a command shows usage, flags and an example", () =>
    Effect.gen(function* () {
      const all = yield* Program.manual
      const isGroup = (path: string) => all.some((words) => words.join(" ").startsWith(`${path} `))
      for (const words of all) {
        const path = words.join(" ")
        const page = yield* said(...words, "--help")
        expect(page).toContain(`USAGE\n  castellan ${path} `)
        expect(page).toContain("Run 'castellan --help' for global flags")
        if (isGroup(path)) continue
        expect(page, path).toMatch(/^ {2}--json \[=boolean\] +print one JSON value$/m)
        expect(page, path).toContain(`EXAMPLES\n  castellan ${path}`)
      }
      expect(all.length).toBeGreaterThan(60)
    })
  )

  it.effect("help of a group lists its commands, help of the program lists all groups", () =>
    Effect.gen(function* () {
      const program = yield* said("--help")
      const groups = new Map<string, string>()
      for (const [group = "", command] of yield* Program.manual) {
        expect(program).toMatch(new RegExp(`^ {2}${group} `, "m"))
        const page = groups.get(group) ?? (yield* said(group, "--help"))
        groups.set(group, page)
        if (command !== undefined) expect(page).toMatch(new RegExp(`^ {2}${command} `, "m"))
        else expect(page).toContain("It ends with 0, or with 1 and the reason on standard error.")
      }
    })
  )

  it.effect("help names required flags and the environment that a command reads", () =>
    Effect.gen(function* () {
      expect(yield* said("deploy", "--help")).toMatch(/^ {2}--deployer ADDRESS +EOA .*\(required\)$/m)
      const call = yield* said("call", "--help")
      expect(call).toContain("\n  CASTELLAN_URL says ")
      expect(call).not.toContain("CASTELLAN_CONFIG")
      expect(yield* said("keys", "--help")).toContain("\n  CASTELLAN_CONFIG names ")
    })
  )

  it.effect("help exits without failure in every form", () =>
    Effect.gen(function* () {
      const program = yield* said("--help")
      for (const args of [[], ["help"], ["-h"]]) expect(yield* said(...args)).toBe(program)
      const group = yield* said("keys", "--help")
      for (const args of [
        ["keys", "help"],
        ["help", "keys"]
      ])
        expect(yield* said(...args)).toBe(group)
      const command = yield* said("keys", "create", "--help")
      for (const args of [
        ["help", "keys", "create"],
        ["keys", "help", "create"],
        ["keys", "create", "acme", "-h"],
        ["keys", "create", "acme", "--scopes", "read", "--help"]
      ])
        expect(yield* said(...args)).toBe(command)
    })
  )
})

describe("a mistyped command line", () => {
  it.effect("a mistyped name gets the nearest known name", () =>
    Effect.gen(function* () {
      expect(yield* refused("acounts", "list")).toBe(
        'Unknown subcommand "acounts" for "castellan"\n\n  Did you mean this?\n    accounts\n"castellan --help" shows the usage'
      )
      expect(yield* refused("keys", "creat", "acme")).toMatch(/^Unknown subcommand "creat" .*\n +create\n/s)
      expect(yield* refused("keys", "create", "acme", "--scope", "read")).toMatch(
        /^Unrecognized flag: --scope in command castellan keys create\n.*\n +--scopes\n/s
      )
      expect(yield* refused("accounts", "list", "--jsn")).toMatch(/\n +--json\n/)
      expect(yield* refused("keys")).toContain("castellan keys needs one of: create, list")
    })
  )

  it.effect("a repeated flag, a missing value or an extra operand is named", () =>
    Effect.gen(function* () {
      expect(yield* refused("accounts", "create", "a", "--name", "x", "--name", "y")).toContain(
        'flag --name: "2 occurrences". Expected: at most 1 value'
      )
      for (const words of [["--name"], ["--name", "--tier", "pro"]])
        expect(yield* refused("accounts", "create", "a", ...words)).toContain(
          "Missing value for flag --name. Expected: TEXT"
        )
      expect(yield* refused("accounts", "create", "a", "b")).toContain("Unexpected positional argument")
      expect(yield* refused("keys", "rotate", "0123456789ab")).toContain("Missing required flag: --overlap")
    })
  )

  it.effect("possible secrets are not repeated", () =>
    Effect.gen(function* () {
      const secret = "Tr0ub4dor&3"
      for (const args of [
        ["signers", "create", "--pin", secret],
        ["signers", "create", `--pin=${secret}`],
        ["signers", "list", secret],
        ["signers", secret],
        [secret],
        ["keys", "identify", secret],
        ["accounts", "create", "a", "--tier", secret],
        ["accounts", "list", `--json=${secret}`],
        ["--log-level", secret],
        ["accounts", "create", "a", `--${secret}`]
      ])
        for (const json of [[], ["--json"]])
          expect(yield* refused(...args, ...json), args.join(" ")).not.toContain(secret)
    })
  )

  it.effect("a usage error is JSON under --json", () =>
    Effect.gen(function* () {
      for (const args of [["acounts"], ["keys", "creat"], ["keys", "create"], ["keys", "create", "a", "--x"]])
        expect(JSON.parse(yield* refused(...args, "--json"))).toEqual({ error: expect.any(String) })
    })
  )
})

describe("a flag", () => {
  it.effect("a flag without a value consumes no operand", () =>
    Effect.gen(function* () {
      const [before, behind] = [
        yield* refused("keys", "list", "--json", "1"),
        yield* refused("keys", "list", "1", "--json")
      ]
      expect(before).toBe(behind)
      expect(yield* refused("chains", "pause", "--json", "1")).toContain("CASTELLAN_CONFIG is not set")
      expect(yield* refused("chains", "pause", "--json")).toContain("Missing required argument: CHAIN")
    })
  )
})

it.effect("--config names the configuration of every command, before and behind its words", () =>
  Effect.gen(function* () {
    const env = { CASTELLAN_CONFIG: "/nowhere/other.json" }
    for (const words of [
      ["accounts", "list"],
      ["lanes", "list"],
      ["config", "check"],
      ["signers", "paused"]
    ])
      for (const args of [
        ["--config", "/nowhere/castellan.json", ...words],
        [...words, "--config", "/nowhere/castellan.json"]
      ])
        expect(yield* Effect.flip(CommandLine.run(args, env))).toContain(
          "the configuration /nowhere/castellan.json cannot be used"
        )
  })
)

describe("completions", () => {
  const printed = async (shell: string) => {
    const program = await runSource("src/hosts/cli/castellan.ts", ["--completions", shell])
    expect(await program.ended).toBe(0)
    return program.stdout()
  }

  it("bash completions offer commands and options", async () => {
    const script = await printed("bash")
    const offered = (...words: ReadonlyArray<string>) =>
      execFileSync(
        "bash",
        [
          "-c",
          // From the package bash-completion.
          `_init_completion() { cur=\${COMP_WORDS[COMP_CWORD]} words=("\${COMP_WORDS[@]}") cword=$COMP_CWORD; }
          ${script}
          COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})
          COMP_CWORD=${words.length - 1}
          _castellan castellan '${words.at(-1)}'
          echo "\${COMPREPLY[@]}"`
        ],
        { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }
      ).trim()
    expect(offered("castellan", "acc")).toBe("accounts")
    expect(offered("castellan", "keys", "ro")).toBe("rotate")
    expect(offered("castellan", "keys", "rotate", "--ov")).toBe("--overlap")
    expect(offered("castellan", "accounts", "add-signer", "--prov")).toBe("--provider")
    expect(offered("castellan", "keys", "list", "--")).toBe("--json")
  })

  it.effect("completions exist for known shells only", () =>
    Effect.gen(function* () {
      for (const args of [["--completions"], ["--completions", "tcsh"]])
        expect(yield* refused(...args)).toMatch(/--completions.*bash.*zsh.*fish/)
    })
  )

  it("zsh and fish completions contain all commands", async () => {
    const all = await Effect.runPromise(Program.manual)
    for (const script of [await printed("zsh"), await printed("fish")])
      for (const words of all) for (const word of words) expect(script).toContain(word)
  })
})

it("--version prints only the version", async () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"))
  expect(await Effect.runPromise(said("--version"))).toBe(version)
})
