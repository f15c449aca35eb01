import { approvals } from '../admin/approvals/start.ts'
import { audit } from '../admin/audit/start.ts'
import { calls } from '../admin/calls/start.ts'
import { groups } from '../admin/groups/start.ts'
import { halts } from '../admin/halts/start.ts'
import { limits } from '../admin/limits/start.ts'
import { live } from '../admin/live/start.ts'
import { login } from '../admin/login/start.ts'
import { metrics } from '../admin/metrics/start.ts'
import { notifications } from '../admin/notifications/start.ts'
import { overview } from '../admin/overview/start.ts'
import { people } from '../admin/people/start.ts'
import { pins } from '../admin/pins/start.ts'
import { policy } from '../admin/policy/start.ts'
import { reload } from '../admin/reload/start.ts'
import { replicas } from '../admin/replicas/start.ts'
import { revisions } from '../admin/revisions/start.ts'
import { servers } from '../admin/servers/start.ts'
import { tools } from '../admin/tools/start.ts'
import { warnings } from '../admin/warnings/start.ts'
import type { ListedRoom } from '../heart/room.ts'
import { completion } from '../mcp/completion/start.ts'
import { logging } from '../mcp/logging/start.ts'
import { prompts } from '../mcp/prompts/start.ts'
import { resources } from '../mcp/resources/start.ts'
import { mcp } from '../mcp/room.ts'
import { tasks } from '../mcp/tasks/start.ts'

/**
 * The capabilities of the gateway, in the order in which they open.
 *
 * `start` opens with the gateway. `people` is loaded at the first request for the API or a page, so a gateway that
 * serves only MCP loads none of it. To add a capability, add its folder and a row; to remove one, remove both.
 */
export const ROOMS: readonly ListedRoom[] = [
  { people: () => import('../admin/agents/routes.ts') },
  { people: () => import('../admin/openapi/routes.ts') },
  { start: calls, people: () => import('../admin/calls/routes.ts') },
  { start: servers, people: () => import('../admin/servers/routes.ts') },
  { start: groups, people: () => import('../admin/groups/routes.ts') },
  { start: policy, people: () => import('../admin/policy/routes.ts') },
  { start: tools, people: () => import('../admin/tools/routes.ts') },
  { start: pins, people: () => import('../admin/pins/routes.ts') },
  { start: login, people: () => import('../admin/login/routes.ts') },
  { start: overview, people: () => import('../admin/overview/routes.ts') },
  { start: halts, people: () => import('../admin/halts/routes.ts') },
  { start: limits, people: () => import('../admin/limits/routes.ts') },
  { start: approvals, people: () => import('../admin/approvals/routes.ts') },
  { start: notifications, people: () => import('../admin/notifications/routes.ts') },
  { start: live, people: () => import('../admin/live/routes.ts') },
  { start: replicas, people: () => import('../admin/replicas/routes.ts') },
  { start: audit, people: () => import('../admin/audit/routes.ts') },
  { people: () => import('../admin/callers/routes.ts') },
  { people: () => import('../admin/change/routes.ts') },
  { people: () => import('../admin/connections/routes.ts') },
  { people: () => import('../admin/grants/routes.ts') },
  { people: () => import('../admin/keys/routes.ts') },
  { people: () => import('../admin/matrix/routes.ts') },
  { start: people, people: () => import('../admin/people/routes.ts') },
  { people: () => import('../admin/preferences/routes.ts') },
  { people: () => import('../admin/runs/routes.ts') },
  { people: () => import('../admin/trial/routes.ts') },
  { people: () => import('../admin/console/routes.ts') },
  { start: resources },
  { start: prompts },
  { start: completion },
  { start: logging },
  { start: tasks },
  // `mcp` comes after every room that brings methods.
  { start: mcp },
  { start: metrics },
  { start: revisions, people: () => import('../admin/revisions/routes.ts') },
  // `reload` comes after every room that a reload renews.
  { start: reload, people: () => import('../admin/reload/routes.ts') },
  { start: warnings, people: () => import('../admin/warnings/routes.ts') },
]
