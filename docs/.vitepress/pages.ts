import type { DefaultTheme } from "vitepress"

/** Pages by what they are called. */
const items = (pages: Readonly<Record<string, string>>): Array<DefaultTheme.SidebarItem> =>
  Object.entries(pages).map(([text, link]) => ({ text, link }))

const signers = items({
  "AWS KMS": "/signers/aws-kms",
  "Azure Key Vault": "/signers/azure-kv",
  Fireblocks: "/signers/fireblocks",
  "Google Cloud KMS": "/signers/gcp-kms",
  "PKCS#11": "/signers/pkcs11"
})

const groups = [
  "wallets",
  "operations",
  "passkeys",
  "requests",
  "chain",
  "events",
  "registry",
  "signing",
  "network",
  "webhooks",
  "watches",
  "policies",
  "decisionHook",
  "topups",
  "service"
]

const decisions = items({
  Terms: "/decisions/01-terms",
  Custody: "/decisions/02-custody",
  "Salts and addresses": "/decisions/03-addresses",
  "Required fields": "/decisions/04-fields",
  "Values and limits": "/decisions/05-values",
  Ops: "/decisions/06-ops",
  "Acceptance and results": "/decisions/07-results",
  Errors: "/decisions/08-errors",
  "Accounts, keys, limits": "/decisions/09-accounts",
  "Endpoints without a shape": "/decisions/10-endpoints"
})

/** Pages of the site, in this order. A test compares them with the files. */
export const sidebar: Array<DefaultTheme.SidebarItem> = [
  {
    text: "Start",
    items: items({ "Quick start": "/start", Installation: "/install", Comparison: "/comparison" })
  },
  {
    text: "Concepts",
    items: items({
      "Addresses before wallets": "/concepts/prediction",
      Custody: "/custody",
      "Ops and bundles": "/concepts/ops",
      "The life of a request": "/concepts/requests",
      Architecture: "/architecture"
    })
  },
  {
    text: "Guides",
    items: items({
      "Polygon Amoy": "/guides/polygon-amoy",
      "Base Sepolia": "/guides/base-sepolia",
      "Passkeys in a web app": "/passkeys",
      "A multisig treasury": "/guides/treasury",
      "Sponsored gas": "/guides/sponsored-gas",
      "Many payouts": "/guides/payouts",
      Previews: "/guides/preview",
      "A key for a program": "/guides/spending-rules",
      Production: "/guides/production",
      "Backup and restore": "/guides/backup",
      Upgrade: "/guides/upgrade",
      "Rotating every key": "/guides/rotation"
    })
  },
  {
    text: "Using it",
    items: items({
      "Executing operations": "/executing",
      "Messages signed as a wallet": "/messages",
      Clients: "/clients",
      Library: "/library",
      Gas: "/gas",
      Webhooks: "/webhooks",
      Watches: "/watches",
      "Decision hook": "/decision-hook"
    })
  },
  {
    text: "Operating it",
    items: [
      ...items({
        Deployment: "/deployment",
        Operations: "/operations",
        Configuration: "/configuration",
        Runbooks: "/runbooks",
        "Accounts, keys and limits": "/accounts",
        "Spending rules": "/spending-rules",
        "Top-ups": "/topups"
      }),
      { text: "Signers", link: "/signers", collapsed: true, items: signers },
      ...items({
        Nodes: "/nodes",
        Scaling: "/scaling",
        Security: "/security",
        Performance: "/performance"
      })
    ]
  },
  {
    text: "Reference",
    items: [
      {
        text: "HTTP",
        link: "/reference",
        collapsed: true,
        items: groups.map((name) => ({ text: name, link: `/reference/${name}` }))
      },
      { text: "Decisions", link: "/decisions/index", collapsed: true, items: decisions },
      ...items({
        Errors: "/errors",
        "Command line": "/cli",
        "Operating commands": "/cli-operating",
        Modules: "/public-api",
        Contracts: "/contracts",
        "Layouts of the contracts": "/layouts",
        "Contracts, function by function": "/contracts-reference",
        Tests: "/testing",
        Dependencies: "/dependencies"
      })
    ]
  }
]

export const nav: Array<DefaultTheme.NavItem> = [
  { text: "Quick start", link: "/start" },
  { text: "Guides", link: "/guides/polygon-amoy", activeMatch: "/guides/" },
  { text: "Reference", link: "/reference", activeMatch: "/reference|/errors|/cli" }
]

/** Linked files of `docs/` that are not pages. */
export const files: ReadonlyArray<string> = ["alerts.yaml", "config.schema.json", "grafana/castellan.json"]
