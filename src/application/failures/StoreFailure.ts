import * as Cause from "effect/Cause"
import { AbiStoreError } from "../ports/AbiStore.js"
import { AuditLogError } from "../ports/AuditLog.js"
import { BudgetsError } from "../ports/Budgets.js"
import { JournalError } from "../ports/journal/JournalError.js"
import { SettingsError } from "../ports/operator/Settings.js"
import { PoliciesError } from "../ports/Policies.js"
import { WatchesError } from "../ports/Watches.js"
import { WebhooksError } from "../ports/Webhooks.js"

/** Whether a defect is a store that did not answer. */
export const is = (defect: unknown): boolean =>
  defect instanceof JournalError ||
  defect instanceof AbiStoreError ||
  defect instanceof AuditLogError ||
  defect instanceof BudgetsError ||
  defect instanceof PoliciesError ||
  defect instanceof SettingsError ||
  defect instanceof WebhooksError ||
  defect instanceof WatchesError

/**
 * Whether the cause is a store that did not answer. No part of such a request was accepted, since accepted work
 * outlives this failure, so its caller may repeat it.
 */
export const isIn = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && is(reason.defect))
