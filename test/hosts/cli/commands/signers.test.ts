import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { computeAddress, Wallet } from "ethers"
import * as SoftHsm from "../../../adapters/keys/pkcs11/SoftHsm.js"
import * as Leaks from "../../../support/Leaks.js"
import * as CommandLine from "../../../support/process/CommandLine.js"
import { runSource } from "../../../support/process/Program.js"

const hsm = SoftHsm.make()
afterAll(() => hsm.remove())
beforeAll(() => {
  SoftHsm.within(hsm, (pkcs11, session) => SoftHsm.generate(pkcs11, session, "taken"))
  SoftHsm.initToken(hsm, "other", hsm.pin)
})

const wrongPin = "not-the-pin-4711"
const privateKey = `0x${"ab".repeat(32)}`
const pepper = "a pepper of many bytes"

const leaks = Leaks.make()
const env = {
  ...hsm.env,
  PEPPER: pepper,
  PIN: hsm.pin,
  WRONG_PIN: wrongPin,
  KEY: privateKey,
  ID: "id",
  SECRET: "s3cr3t"
}

const token = {
  kind: "pkcs11",
  name: "hsm",
  module: SoftHsm.library,
  token: hsm.token,
  pin: { env: "PIN" }
}
const kms = {
  kind: "aws-kms",
  name: "kms",
  region: "eu-central-1",
  // No server listens on the port of tcpmux.
  endpoint: "http://127.0.0.1:1",
  credentials: { accessKeyId: { env: "ID" }, secretAccessKey: { env: "SECRET" } }
}

const signer = (versionId: string, provider: string, key: string) => ({
  accounts: ["acme"],
  clientId: "acme",
  versionId,
  provider,
  key
})

const stranger = "0x00000000000000000000000000000000000000F2"

let runs = 0

/** A configuration file with these keys. */
const configuration = (keys: Readonly<Record<string, unknown>>): string => {
  runs += 1
  const file = join(hsm.folder, `castellan-${runs}.json`)
  writeFileSync(
    file,
    JSON.stringify({
      profile: "production",
      listen: { host: "127.0.0.1", port: 0 },
      database: { path: "castellan.sqlite" },
      keyPepper: { env: "PEPPER" },
      accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [] }],
      allowPrivateKeys: true,
      providers: [token, kms],
      networks: [],
      ...keys
    })
  )
  return file
}

/** Runs the command with these keys configured. */
const command = async (args: ReadonlyArray<string>, keys: Readonly<Record<string, unknown>> = {}) => {
  const program = await runSource("src/hosts/cli/castellan.ts", ["signers", ...args], {
    env: { ...env, CASTELLAN_CONFIG: configuration(keys) }
  })
  const code = await program.ended
  leaks.keep(args.join(" "), program.stdout())
  leaks.keep(args.join(" "), program.stderr())
  return { code, stdout: program.stdout(), stderr: program.stderr() }
}

/** The command's error, in-process because no key is used. */
const refusal = (args: ReadonlyArray<string>, keys: Readonly<Record<string, unknown>> = {}) =>
  Effect.runPromise(
    Effect.map(
      Effect.flip(CommandLine.run(["signers", ...args], { ...env, CASTELLAN_CONFIG: configuration(keys) })),
      (why) => {
        leaks.keep(args.join(" "), why)
        return why
      }
    )
  )

const create = (key: string, ...more: ReadonlyArray<string>) =>
  command(["create", "--provider", "hsm", "--key", key, ...more])

describe("the command that makes a key", () => {
  it("creates a key that cannot leave the token, and prints the configuration entry", async () => {
    const { code, stderr, stdout } = await create("acme-1")
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    const publicKey = /public key: (04[0-9a-f]{128})\n/.exec(stdout)?.[1] ?? ""
    const address = computeAddress(`0x${publicKey}`)
    expect(stdout).toContain(`address:    ${address}\n`)
    const entry = JSON.parse(stdout.slice(stdout.indexOf("{")))
    expect(entry).toEqual({ ...signer("1", "hsm", "acme-1"), address })

    const listed = await command(["list"], { signers: [entry] })
    expect(listed.stdout).toMatch(
      new RegExp(`\nsigner "acme" versionId "1" +${address} +HSM +.* +reachable\n$`)
    )
    SoftHsm.within(hsm, (pkcs11, session) => {
      const { CKA_CLASS, CKA_EXTRACTABLE, CKA_LABEL, CKA_NEVER_EXTRACTABLE, CKA_SENSITIVE, CKA_VALUE } =
        SoftHsm.binding
      pkcs11.C_FindObjectsInit(session, [
        { type: CKA_CLASS, value: SoftHsm.binding.CKO_PRIVATE_KEY },
        { type: CKA_LABEL, value: "acme-1" }
      ])
      const [key, other] = pkcs11.C_FindObjects(session, 2)
      pkcs11.C_FindObjectsFinal(session)
      if (key === undefined || other !== undefined) throw new Error("not one key")
      const flags = [CKA_EXTRACTABLE, CKA_SENSITIVE, CKA_NEVER_EXTRACTABLE].map((type) => ({ type }))
      const read = pkcs11.C_GetAttributeValue(session, key, flags)
      expect(read.map(({ value }) => value.toString("hex"))).toEqual(["00", "01", "01"])
      expect(() => pkcs11.C_GetAttributeValue(session, key, [{ type: CKA_VALUE }])).toThrow(
        "CKR_ATTRIBUTE_SENSITIVE"
      )
    })
  })

  it("continues the client's version numbers", async () => {
    const signers = [signer("1", "hsm", "taken"), signer("7", "hsm", "taken"), signer("old", "hsm", "taken")]
    const next = await command(["create", "--provider", "hsm", "--key", "acme-8"], { signers })
    expect(JSON.parse(next.stdout.slice(next.stdout.indexOf("{")))).toMatchObject({ versionId: "8" })
    const other = await command(
      ["create", "--provider", "hsm", "--key", "other-1", "--account", "acme", "--client-id", "other"],
      { signers }
    )
    expect(JSON.parse(other.stdout.slice(other.stdout.indexOf("{")))).toMatchObject({
      accounts: ["acme"],
      clientId: "other",
      versionId: "1"
    })
  })

  it("refuses a label that exists on the token, and creates no key", async () => {
    const count = () =>
      SoftHsm.within(hsm, (pkcs11, session) => {
        pkcs11.C_FindObjectsInit(session, [{ type: SoftHsm.binding.CKA_LABEL, value: "taken" }])
        return pkcs11.C_FindObjects(session, 10).length
      })
    expect(await create("taken")).toEqual({
      code: 1,
      stdout: "",
      stderr: 'no key was made: PKCS #11: the token has a key "taken" already\n'
    })
    expect(count()).toBe(2)
  })

  it("refuses names that no key could be found under", async () => {
    const named = (name: string) => refusal(["create", "--provider", "hsm", "--key", name])
    expect(await named("id:01")).toBe("no key was made: PKCS #11: a label cannot look like an id")
    for (const name of ["", " x", "x".repeat(513)])
      expect(await named(name)).toBe("--key: expected 1 to 512 characters without outer white space")
  })

  it("names the place where keys of other kinds are made", async () => {
    expect(await refusal(["create", "--provider", "kms", "--key", "x"])).toBe(
      "keys of kind aws-kms are not made by this command: see docs/signers/aws-kms.md"
    )
    expect(await refusal(["create", "--provider", "none", "--key", "x"])).toBe(
      "the configuration has no provider called none"
    )
  })

  it("accepts a PIN only by reference", async () => {
    const refused = await create("x", "--pin", hsm.pin)
    expect(refused).toMatchObject({ code: 1, stdout: "" })
    expect(refused.stderr).toMatch(/^Unrecognized flag: --pin in command castellan signers create\n/)
    expect(await refusal(["list"], { providers: [{ ...token, pin: "1234" }] })).toContain(
      "providers[0].pin: secrets stand in the configuration of a development profile only"
    )
  })

  it("names a missing flag", async () => {
    expect(await refusal(["create"])).toContain("Missing required flag: --provider")
    const said = await refusal(["create", "--provider", "hsm"])
    expect(said).toBe('Missing required flag: --key\n"castellan signers create --help" shows the usage')
  })
})

describe("the command that lists signers", () => {
  it("prints address, type, place and problem of each signer", async () => {
    const pinned = stranger
    const { code, stdout } = await command(["list"], {
      providers: [token, kms, { ...token, name: "locked out", token: "other", pin: { env: "WRONG_PIN" } }],
      signers: [
        signer("1", "hsm", "taken"),
        { ...signer("2", "hsm", "taken"), address: pinned },
        signer("3", "hsm", "none"),
        { ...signer("4", "kms", "alias/acme"), address: pinned },
        signer("5", "locked out", "taken"),
        { accounts: ["acme"], clientId: "acme", versionId: "6", privateKey: { env: "KEY" } }
      ],
      systemKeys: { deployer: { provider: "hsm", key: "taken" } }
    })
    expect(code).toBe(0)
    const [heads, ...rows] = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/))
    expect(heads).toEqual(["SIGNER", "ADDRESS", "TYPE", "KEY", "ACCOUNTS", "FROM", "STATE"])
    const address = rows[0]?.[1] ?? ""
    expect(address).toMatch(/^0x[0-9a-fA-F]{40}$/)
    const named = (versionId: string) => `signer "acme" versionId "${versionId}"`
    const at = (key: string, provider: string) => `"${key}" of provider "${provider}"`
    const whose = ["acme", "file"]
    expect(rows).toEqual([
      [named("1"), address, "HSM", at("taken", "hsm"), ...whose, "reachable"],
      [named("2"), address, "HSM", at("taken", "hsm"), ...whose, `reachable, but configured is ${pinned}`],
      [
        named("3"),
        "unknown",
        "HSM",
        at("none", "hsm"),
        ...whose,
        "not reachable: PKCS #11: there is no private key of this name (notFound)"
      ],
      [
        named("4"),
        pinned,
        "KMS",
        at("alias/acme", "kms"),
        ...whose,
        "not reachable: AWS KMS: ECONNREFUSED (unavailable)"
      ],
      [
        named("5"),
        "unknown",
        "HSM",
        at("taken", "locked out"),
        ...whose,
        "not reachable: PKCS #11: CKR_PIN_INCORRECT (the PIN is not tried again) (refused)"
      ],
      [
        named("6"),
        new Wallet(privateKey).address,
        "PRIVATE_KEY",
        at("signers[5].privateKey", "configuration"),
        ...whose,
        "reachable"
      ],
      ["the system key deployer", address, "HSM", at("taken", "hsm"), "-", "file", "reachable"]
    ])
  })
})

describe("the command that shows a signer", () => {
  const address = new Wallet(privateKey).address
  const keys = {
    signers: [
      { accounts: ["acme"], clientId: "acme", versionId: "6", privateKey: { env: "KEY" } },
      { ...signer("4", "kms", "alias/acme"), address: stranger }
    ]
  }
  const heard = (...args: ReadonlyArray<string>) =>
    Effect.runPromise(
      Effect.map(
        CommandLine.heard(["signers", ...args], { ...env, CASTELLAN_CONFIG: configuration(keys) }),
        (said) => {
          leaks.keep(args.join(" "), said.stdout)
          leaks.keep(args.join(" "), said.stderr)
          return said
        }
      )
    )

  it("prints all facts about the key of an address", async () => {
    const { stdout } = await heard("show", address.toLowerCase())
    expect(stdout).toMatch(/^signer +signer "acme" versionId "6"\naddress +0x/)
    expect(stdout).toContain(`address   ${address}\n`)
    expect(stdout).toContain('"signers[0].privateKey" of provider "configuration"\n')
    expect(stdout).toContain("accounts  acme\nfrom      file\nstate     reachable\n\nit may sign")
  })

  it("prints the configuration and the problem of a signer whose provider is down", async () => {
    const { stdout } = await heard("show", stranger, "--json")
    expect(JSON.parse(stdout)).toEqual({
      address: stranger,
      paused: null,
      signers: [
        {
          signer: 'signer "acme" versionId "4"',
          accounts: ["acme"],
          address: stranger,
          pinned: stranger,
          type: "KMS",
          provider: "kms",
          key: "alias/acme",
          origin: "file",
          reachable: false,
          problem: "AWS KMS: ECONNREFUSED (unavailable)"
        }
      ]
    })
  })

  it("lists the known addresses when the address is unknown", async () => {
    const nobody = "0x00000000000000000000000000000000000000f3"
    expect(await refusal(["show", nobody], keys)).toBe(
      `no key of the service has the address 0x00000000000000000000000000000000000000f3; there are: ${address} (signer "acme" versionId "6"), ${stranger} (signer "acme" versionId "4")`
    )
    expect(await refusal(["show", "acme"], keys)).toMatch(/^acme: /)
  })
})

describe("the command that pauses a signer", () => {
  it("pauses a signer with a warning while its provider is down", async () => {
    const paused = await Effect.runPromise(
      CommandLine.heard(["signers", "pause", stranger, "--json"], {
        ...env,
        CASTELLAN_CONFIG: configuration({ signers: [signer("4", "kms", "alias/acme")] })
      })
    )
    expect(JSON.parse(paused.stdout)).toEqual({ kind: "signer", subject: stranger, paused: true })
    expect(paused.stderr).toContain('unavailable: signer "acme" versionId "4"')
  })
})

describe("the signers commands", () => {
  it("print no secret", () => {
    expect(Object.keys(leaks.counts()).length).toBeGreaterThan(5)
    expect(leaks.found({ pin: hsm.pin, "wrong pin": wrongPin, "private key": privateKey, pepper })).toEqual(
      []
    )
  })
})
