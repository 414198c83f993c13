import type { NodeLog } from './api';

export interface NodeGroup {
  container: string;
  reason: string;
  /** By name. */
  nodes: string[];
}

/** Where there are more, nodes that differ in counts alone become one group. */
export const MAX_GROUPS = 24;

/** Refused nodes by identical refusal, the greatest group first. */
export function nodeGroups(nodes: NodeLog[]): NodeGroup[] {
  const groups = grouped(nodes, reason => reason);
  return groups.length <= MAX_GROUPS ? groups : grouped(nodes, withoutCounts);
}

function grouped(nodes: NodeLog[], shown: (reason: string) => string): NodeGroup[] {
  const groups = new Map<string, NodeGroup>();
  for (const node of nodes) {
    if (node.status !== 'failed') continue;
    const refused = node.containers.find(each => each.status === 'failed');
    const container = refused?.name ?? '';
    const reason = shown(refused?.reason ?? '');
    const key = JSON.stringify([container, reason]);
    const group = groups.get(key) ?? { container, reason, nodes: [] };
    group.nodes.push(node.name);
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.nodes.length - a.nodes.length);
}

/** `2/8 NumaNotFit, 6/8 CardCordoned` is `CardCordoned, NumaNotFit`. */
function withoutCounts(reason: string): string {
  const parts = reason.split(', ').map(part => part.replace(/^\d+\/\d+ /, ''));
  return parts.sort().join(', ');
}
