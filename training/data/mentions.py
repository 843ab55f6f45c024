"""How people mention a value where no label is needed: what is said around it tells its kind."""

from __future__ import annotations

from training.data.side import templates
from training.data.stages import PLAINER
from training.data.ways import ways


def _said(train: str, held_out: str) -> tuple[list[str], list[str]]:
    train_side, other = ([" ".join(each.split()) for each in text.split("/")] for text in (train, held_out))
    return train_side, other


_WRITTEN = {
    "person": _said(
        """for {v} / of {v} / with {v} / by {v} / from {v} / under the name {v} / in the name of {v} / ({v}) / as {v}
        wants it / signed by {v} / assigned to {v} / led by {v} / handled by {v} / meant for {v} / requested by {v}
        / care of {v} / together with {v} / that {v} [asked for|needs|ordered|has] / to be given to {v} / in {v}'s
        name / which is {v}'s / written by {v} / for my [friend|colleague|boss|teacher|neighbour] {v} / and
        [mention|ask|tell] {v} / [he|she] is called {v} / the person is {v} / where {v} is in charge / whom we know
        as {v}""",
        held_out="on behalf of {v} / belonging to {v}",
    ),
    "place": _said(
        """in {v} / in {v} / for {v} / at {v} / near {v} / from {v} / to {v} / outside {v} / close to {v} / ({v}) /
        somewhere in {v} / not far from {v} / coming from {v} / going to {v} / based in {v} / down in {v} / across
        {v} / when I am in {v} / since I live in {v} / to be sent to {v} / on the way to {v} / in the {v} area /
        within {v} / [here|there] in {v} / the place is {v} / {v} is where it is / through {v} / set in {v} / and
        then on to {v}""",
        held_out="around {v} / over in {v}",
    ),
    "company": _said(
        """for {v} / from {v} / of {v} / at {v} / with {v} / made by {v} / owned by {v} / sold by {v} / supplied by {v}
        / managed by {v} / on the account of {v} / that {v} pays for / hired by {v} / built by {v} / for the people
        at {v} / billed to {v} / working with {v} / represented by {v} / ordered by {v} / [who work|that works] for
        {v} / the company is {v} / between us and {v} / in {v}'s name / sponsored by {v} / delivered by {v} / {v} is
        the one that pays""",
        held_out="run by {v} / on the books of {v}",
    ),
    "email": _said(
        """to {v} / for {v} / from {v} / with a copy to {v} / by mail to {v} / (write to {v}) /
        [mailed|sent|copied|forwarded] to {v} / and [mail|send|forward|copy] it to {v} / at {v} / the address is {v}
        / writing to {v} / by e-mail to {v} / with {v} in copy / I am {v} / mine is {v} / with replies to {v} /
        where {v} gets a copy / to the address {v} / linked to {v} / registered with {v} / {v} is the address /
        using {v} / answers go to {v}""",
        held_out="addressed to {v} / via {v}",
    ),
    "url": _said(
        """from {v} / at {v} / for {v} / on {v} / through {v} / (see {v}) / hosted at {v} / linked from {v} /
        [taken|read|loaded|downloaded] from {v} / using {v} / with the link {v} / which is at {v} / it is on {v} /
        as on {v} / pointing to {v} / here: {v} / the page is {v} / visit {v} / that {v} shows / under the address
        {v} / open {v} / by the link {v} / listed on {v}""",
        held_out="found at {v} / behind {v}",
    ),
    "code": _said(
        """{v} / with the id {v} / number {v} / for {v} / no. {v} / with code {v} / marked {v} / ({v}) / with number
        {v} / the number is {v} / its number is {v} / it is {v} / listed as {v} / filed as {v} / identified by {v} /
        numbered {v} / that has {v} on it / #: {v} / with {v} printed on it / registered as {v} / I mean {v} /
        namely {v} / by its number, {v} / stored as {v} / labelled {v} / {v} is its number / (no. {v}) / called {v}""",
        held_out="known as {v} / under {v}",
    ),
    "phone": _said(
        """to {v} / at {v} / on {v} / by phone at {v} / with the number {v} / (call {v}) / [call|ring|phone|dial] {v} /
        and call {v} / by calling {v} / the number is {v} / my number is {v} / ask at {v} / who has {v} / that you
        get at {v} / under the number {v} / phone {v} / tel. {v} / with a call to {v} / when you dial {v} / {v} is
        the number / using the number {v} / from {v}""",
        held_out="reachable at {v}",
    ),
    "date": _said(
        """on {v} / for {v} / for the {v} / by {v} / from {v} / until {v} / before {v} / due {v} / ({v}) / planned for
        {v} / scheduled for {v} / [starting|beginning] on {v} / ending on {v} / not later than {v} / after {v} /
        since {v} / valid from {v} / of {v} / the day is {v} / it happens on {v} / when it is {v} / as it was on {v}
        / in time for {v} / set for {v} / not before {v} / to be done by {v} / through {v} / it was {v} / {v} is the
        day""",
        held_out="dated {v} / as of {v}",
    ),
    "time": _said(
        """at {v} / for {v} / by {v} / from {v} / until {v} / before {v} / at {v} sharp / [starts|begins|ends] at {v} /
        scheduled for {v} / set for {v} / after {v} / when it is {v} / as early as {v} / exactly at {v} / not before
        {v} / beginning at {v} / ready by {v} / planned for {v} / it is at {v} / the hour is {v} / {v} on the dot /
        to be there at {v} / since {v} / through to {v}""",
        held_out="starting {v} / no later than {v}",
    ),
    "topic": _said(
        """about {v} / on {v} / on the topic of {v} / concerning {v} / covering {v} / dealing with {v} / that treats
        {v} / related to {v} / focused on {v} / all about {v} / that deals with {v} / which mentions {v} / with {v}
        in it / explaining {v} / describing {v} / in the field of {v} / with a focus on {v} / as far as {v} go / for
        everything about {v} / that is about {v} / discussing {v} / centred on {v} / the topic is {v} / mentioning
        {v} / in connection with {v} / touching on {v}""",
        held_out="regarding {v} / to do with {v}",
    ),
    "message": _said(
        """saying "{v}" / with the text "{v}" / that says: "{v}" / "{v}" / saying '{v}' / with "{v}" / that goes "{v}"
        / with the words "{v}" / and write "{v}" / containing "{v}" / - '{v}' / to say "{v}" / and it says "{v}" /
        which says '{v}' / with this in it: "{v}" / stating "{v}" / in these words: "{v}" / quote: "{v}" / saying:
        "{v}" / where it says "{v}" / "{v}" it should say / telling them "{v}" / and add "{v}" / : "{v}" / the words
        are "{v}" / with '{v}' written on it / to read: '{v}' / put "{v}" in it / [using|in] the words '{v}'""",
        held_out='that reads "{v}" / worded as follows: "{v}"',
    ),
    "title": _said(
        """called "{v}" / named {v} / titled {v} / with the title "{v}" / with the name {v} / under the title "{v}" /
        "{v}" / that is called {v} / entitled {v} / by the title "{v}" / that we call "{v}" / which goes by {v} /
        under the name "{v}" / labelled "{v}" / headed "{v}" / "{v}" is what it is called / and call it "{v}" / the
        name is "{v}" / and name it {v} / (its name is {v}) / it is called "{v}" / listed as "{v}" / filed under
        "{v}" / with "{v}" on top / that goes by the name of "{v}" / marked "{v}" / I call it {v}""",
        held_out='known by the name {v} / dubbed "{v}"',
    ),
    "phrase": _said(
        """- {v} / which is {v} / ({v}) / described as {v} / that is {v} / it is {v} / meaning {v} / as {v} / in other
        words {v} / namely {v} / to be exact {v} / , {v}, / basically {v} / you could say {v} / we describe it as
        {v} / think of {v} / something like {v} / known to be {v} / seen as {v} / for short: {v} / the idea is {v} /
        I would call it {v} / which means {v} / in a few words: {v} / it should be {v}""",
        held_out="in short {v} / being {v}",
    ),
    "word": _said(
        """for {v} / of {v} / with {v} / "{v}" / '{v}' / on {v} / by {v} / from {v} / using {v} / on the word {v} / of
        the word {v} / which has {v} / containing {v} / made of {v} / like {v} / namely {v} / say {v} / where it
        says {v} / the word is {v} / about {v} / given {v} / it is {v} / starting with {v} / , {v}, / using the word
        "{v}" / as in {v} / with '{v}' in it / such as {v}""",
        held_out="applied to {v} / taking {v}",
    ),
    "street": _said(
        """at {v} / to {v} / in {v} / near {v} / on {v} / with the address {v} / over at {v} / that stands at {v} /
        living at {v} / sent to {v} / the address is {v} / we are at {v} / I live at {v} / going to {v} / next to
        {v} / opposite {v} / from {v} / for the house at {v} / coming from {v} / by {v} / to the house at {v} /
        which is at {v}""",
        held_out="located at {v} / delivered to {v}",
    ),
    "language": _said(
        """in {v} / into {v} / to {v} / written in {v} / for {v} speakers / translated into {v} / for people who speak
        {v} / using {v} / that is in {v} / in the {v} language / for {v} readers / with {v} text / answered in {v} /
        from {v} / as {v} / but in {v} / said in {v} / in {v}, please, / so that {v} speakers get it / the language
        is {v} / printed in {v}""",
        held_out="rendered in {v} / spoken in {v}",
    ),
    "unit": _said(
        """in {v} / measured in {v} / with {v} / as {v} / given in {v} / shown in {v} / converted to {v} / to {v} /
        into {v} / using {v} / calculated in {v} / and give me {v} / in terms of {v} / the unit is {v} / by {v} /
        for {v} / written in {v} / with {v} as unit / reported in {v} / weighed in {v}""",
        held_out="expressed in {v} / counted in {v}",
    ),
    "count": _said(
        """for {v} / with {v} / of {v} / exactly {v} / numbering {v} / on {v} / {v} of them / {v} in all / {v} times /
        by {v} / at {v} / limited to {v} / not more than {v} / at least {v} / at most {v} / a total of {v} / as many
        as {v} / there are {v} / we are {v} / set to {v} / no more than {v} / make it {v} / as high as {v} / {v} of
        those / to {v} / we need {v} / I want {v} / {v} is enough / counting {v}""",
        held_out="totalling {v} / up to {v}",
    ),
    "integer": _said(
        """for {v} / of {v} / with {v} / on {v} / by {v} / from {v} / given {v} / to {v} / and {v} / namely {v} / say
        {v} / using {v} / it is {v} / the number is {v} / which is {v} / beginning with {v} / at {v} / about {v} /
        the number {v} / that is {v} / : {v} / I have {v} / like {v} / where it is {v}""",
        held_out="applied to {v} / taking {v}",
    ),
    "decimal": _said(
        """of {v} / for {v} / at {v} / with {v} / about {v} / costing {v} / [weighing|measuring|reaching] {v} / priced
        at {v} / equal to {v} / it is {v} / set to {v} / up by {v} / by {v} / to {v} / from {v} / below {v} / above
        {v} / at most {v} / exactly {v} / which makes {v} / roughly {v} / the number is {v} / that is {v} / , {v} in
        all, / using {v}""",
        held_out="worth {v} / coming to {v}",
    ),
}

MENTIONS = {kind: templates(*sides, later={PLAINER: ways(f"mention {kind}")}) for kind, sides in _WRITTEN.items()}
