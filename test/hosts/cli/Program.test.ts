import { execFileSync } from "node:child_process"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../../../src/hosts/cli/Program.js"
import * as CommandLine from "../../support/process/CommandLine.js"
import { runSource } from "../../support/process/Program.js"

const said = (...args: ReadonlyArray<string>) => CommandLine.run(args, {})
const refused = (...args: ReadonlyArray<string>) => Effect.flip(said(...args))

describe("help", () => {
  it.effect("of a command shows how it is written, its options and an example", () =>
    Effect.gen(function* () {
      for (const { commands, name } of yield* Program.manual)
        for (const command of commands) {
          const words = name === command.name ? [name] : [name, command.name]
          const page = yield* said(...words, "--help")
          expect(page).toContain(`USAGE\n  $ castellan ${words.join(" ")} `)
          expect(page).toContain(command.about)
          expect(page).toContain("  --json\n")
          expect(page).toContain(`EXAMPLES\n  $ castellan ${words.join(" ")}`)
          expect(page).toContain("EXIT STATUS\n")
        }
    })
  )

  it.effect("of a group has all its commands, and that of the program all groups", () =>
    Effect.gen(function* () {
      const program = yield* said("--help")
      for (const { commands, name } of yield* Program.manual) {
        expect(program).toContain(`  ${name} `)
        const page = yield* said(name, "--help")
        for (const command of commands)
          expect(page).toContain(`castellan ${name} ${command.name === name ? "" : `${command.name} `}`)
      }
    })
  )

  it.effect("brackets what may be given several times, and tells the environment that a command reads", () =>
    Effect.gen(function* () {
      expect(yield* said("deploy", "--help")).toContain(" [--account ID]... ")
      const call = yield* said("call", "--help")
      expect(call).toContain("ENVIRONMENT\n  CASTELLAN_URL ")
      expect(call).not.toContain("CASTELLAN_CONFIG")
      expect(yield* said("keys", "--help")).toContain("ENVIRONMENT\n  CASTELLAN_CONFIG ")
    })
  )

  it.effect("is no failure, however it is asked for", () =>
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

describe("what is mistyped", () => {
  it.effect("is told with the name that was meant", () =>
    Effect.gen(function* () {
      expect(yield* refused("acounts", "list")).toContain("no command acounts; did you mean accounts?")
      expect(yield* refused("keys", "creat", "acme")).toContain("no command creat; did you mean create?")
      expect(yield* refused("keys", "create", "acme", "--scope", "read")).toContain(
        "there is no option --scope; did you mean --scopes?"
      )
      expect(yield* refused("accounts", "list", "--jsn")).toContain("did you mean --json?")
      expect(yield* refused("keys")).toContain("castellan keys needs one of: create, list")
    })
  )

  it.effect("is told as it is: given twice, without its value, one operand too many", () =>
    Effect.gen(function* () {
      expect(yield* refused("accounts", "create", "a", "--name", "x", "--name", "y")).toContain(
        "--name is given twice"
      )
      expect(yield* refused("accounts", "create", "a", "--name")).toContain("--name needs a value")
      expect(yield* refused("accounts", "create", "a", "b")).toContain("an operand too many")
    })
  )

  it.effect("is not repeated where it may be a secret", () =>
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
        ["accounts", "create", "a", `--${secret}`]
      ])
        for (const json of [[], ["--json"]])
          expect(yield* refused(...args, ...json), args.join(" ")).not.toContain(secret)
    })
  )

  it.effect("is told programs as JSON", () =>
    Effect.gen(function* () {
      for (const args of [["acounts"], ["keys", "creat"], ["keys", "create"], ["keys", "create", "a", "--x"]])
        expect(JSON.parse(yield* refused(...args, "--json"))).toEqual({ error: expect.any(String) })
    })
  )
})

describe("a flag", () => {
  it.effect("takes nothing of what stands behind it", () =>
    Effect.gen(function* () {
      const [before, behind] = [
        yield* refused("keys", "list", "--json", "1"),
        yield* refused("keys", "list", "1", "--json")
      ]
      expect(before).toBe(behind)
      expect(yield* refused("chains", "pause", "--json", "1")).toContain("CASTELLAN_CONFIG is not set")
    })
  )
})

describe("completions", () => {
  const printed = async (shell: string) => {
    const program = await runSource("src/hosts/cli/castellan.ts", ["--completions", shell])
    expect(await program.ended).toBe(0)
    return program.stdout()
  }

  it("of bash offer commands and options", async () => {
    const script = await printed("bash")
    const offered = (...words: ReadonlyArray<string>) =>
      execFileSync(
        "bash",
        [
          "-c",
          `${script}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})\nCOMP_CWORD=${words.length - 1}\n_castellan_bash_completions castellan\necho "\${COMPREPLY[@]}"`
        ],
        { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }
      ).trim()
    expect(offered("castellan", "acc")).toBe("accounts")
    expect(offered("castellan", "keys", "ro")).toBe("rotate")
    expect(offered("castellan", "keys", "rotate", "--ov")).toBe("--overlap")
    expect(offered("castellan", "accounts", "add-signer", "--prov")).toBe("--provider")
  })

  it.effect("are for shells that are known", () =>
    Effect.gen(function* () {
      for (const args of [["--completions"], ["--completions", "tcsh"]])
        expect(yield* refused(...args)).toBe("--completions: expected bash, zsh or fish")
    })
  )

  it("of zsh and fish name all commands", async () => {
    const groups = await Effect.runPromise(Program.manual)
    for (const script of [await printed("zsh"), await printed("fish")])
      for (const { commands, name } of groups)
        for (const word of [name, ...commands.map((command) => command.name)]) expect(script).toContain(word)
  })
})
