import { pageAddress } from './PageLink';

test.each([
  ['https://log.example.com/', 'https://log.example.com/ui/nodes/n1?lang=zh'],
  ['https://example.com/log', 'https://example.com/log/ui/nodes/n1?lang=zh'],
  ['javascript:alert(1)', undefined],
  ['log.example.com', undefined],
  [undefined, undefined],
])('the page of a node below %s is %s', (pages, address) => {
  expect(pageAddress(pages, '/ui/nodes/n1', 'zh')).toBe(address);
});
