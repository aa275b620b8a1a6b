import type { DefaultTheme } from "vitepress"

/** What the site shows, in this order. A test holds it against the pages that there are. */
export const sidebar: Array<DefaultTheme.SidebarItem> = [
  {
    text: "Start",
    items: [
      { text: "Quick start", link: "/start" },
      { text: "Comparison", link: "/comparison" }
    ]
  },
  {
    text: "Concepts",
    items: [
      { text: "Addresses before wallets", link: "/concepts/prediction" },
      { text: "Custody", link: "/custody" },
      { text: "Ops and bundles", link: "/concepts/ops" },
      { text: "The life of a request", link: "/concepts/requests" },
      { text: "Architecture", link: "/architecture" }
    ]
  },
  {
    text: "Guides",
    items: [
      { text: "Polygon Amoy", link: "/guides/polygon-amoy" },
      { text: "Base Sepolia", link: "/guides/base-sepolia" },
      { text: "Passkeys in a web app", link: "/passkeys" },
      { text: "A multisig treasury", link: "/guides/treasury" },
      { text: "Sponsored gas", link: "/guides/sponsored-gas" },
      { text: "Many payouts", link: "/guides/payouts" },
      { text: "Production", link: "/guides/production" },
      { text: "Backup and restore", link: "/guides/backup" },
      { text: "Upgrade", link: "/guides/upgrade" },
      { text: "Rotating every key", link: "/guides/rotation" }
    ]
  },
  {
    text: "Using it",
    items: [
      { text: "Executing operations", link: "/executing" },
      { text: "Gas", link: "/gas" },
      { text: "Webhooks", link: "/webhooks" },
      { text: "Watches", link: "/watches" }
    ]
  },
  {
    text: "Operating it",
    items: [
      { text: "Operations", link: "/operations" },
      { text: "Accounts, keys and limits", link: "/accounts" },
      {
        text: "Signers",
        link: "/signers",
        collapsed: true,
        items: [
          { text: "AWS KMS", link: "/signers/aws-kms" },
          { text: "Azure Key Vault", link: "/signers/azure-kv" },
          { text: "Fireblocks", link: "/signers/fireblocks" },
          { text: "Google Cloud KMS", link: "/signers/gcp-kms" },
          { text: "PKCS#11", link: "/signers/pkcs11" }
        ]
      },
      { text: "Nodes", link: "/nodes" },
      { text: "Scaling", link: "/scaling" },
      { text: "Security", link: "/security" },
      { text: "Performance", link: "/performance" }
    ]
  },
  {
    text: "Reference",
    items: [
      {
        text: "HTTP",
        link: "/reference",
        collapsed: true,
        items: [
          "wallets",
          "operations",
          "chain",
          "events",
          "registry",
          "signing",
          "network",
          "webhooks",
          "watches",
          "service"
        ].map((name) => ({ text: name, link: `/reference/${name}` }))
      },
      { text: "Errors", link: "/errors" },
      { text: "Command line", link: "/cli" },
      { text: "Modules", link: "/public-api" },
      { text: "Contracts", link: "/contracts" },
      { text: "Contracts, function by function", link: "/contracts-reference" },
      { text: "Tests", link: "/testing" },
      { text: "Licences", link: "/licences" }
    ]
  }
]

export const nav: Array<DefaultTheme.NavItem> = [
  { text: "Quick start", link: "/start" },
  { text: "Guides", link: "/guides/polygon-amoy", activeMatch: "/guides/" },
  { text: "Reference", link: "/reference", activeMatch: "/reference|/errors|/cli" }
]

/** Files of `docs/` that pages link to and that are no pages. */
export const files: ReadonlyArray<string> = ["config.schema.json", "grafana/castellan.json"]
