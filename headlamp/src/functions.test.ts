import answers from './answers.json';
import type { NodeLog } from './api';
import { MAX_GROUPS, nodeGroups } from './nodeGroups';
import { pageAddress } from './PageLink';

const LOG =
  '/apis/schedulerlog.io/v1alpha1/namespaces/default/pods/gpu-pod-default/schedulerlog?status=failed';

function refused(name: string, reason: string): NodeLog {
  const containers = [{ name: 'main', status: 'failed' as const, reason }];
  return { name, status: 'failed', score: 0, containers };
}

test('nodes that were refused alike are one group, the greatest first', () => {
  const groups = nodeGroups(answers[LOG].filter.nodes as NodeLog[]);
  expect(groups.slice(0, 2).map(each => each.nodes)).toEqual([
    ['node1', 'node5'],
    ['node10', 'node6'],
  ]);
  expect(groups.flatMap(each => each.nodes)).toHaveLength(9);
});

test('where counts alone make too many groups, nodes with the same reasons are one', () => {
  const nodes = Array.from({ length: MAX_GROUPS + 1 }, (_, number) =>
    refused(`node${number}`, `${number}/64 NumaNotFit, ${64 - number}/64 CardCordoned`)
  );
  expect(nodeGroups(nodes).map(each => [each.reason, each.nodes.length])).toEqual([
    ['CardCordoned, NumaNotFit', MAX_GROUPS + 1],
  ]);
});

test('a reason that counts no devices is a group too', () => {
  const [group] = nodeGroups([refused('node1', 'node unregistered')]);
  expect(group.reason).toBe('node unregistered');
});

test.each([
  ['https://log.example.com/', 'https://log.example.com/ui/nodes/n1?lang=zh'],
  ['https://example.com/log', 'https://example.com/log/ui/nodes/n1?lang=zh'],
  ['javascript:alert(1)', undefined],
  ['log.example.com', undefined],
  [undefined, undefined],
])('the page of a node below %s is %s', (pages, address) => {
  expect(pageAddress(pages, '/ui/nodes/n1', 'zh')).toBe(address);
});
