# Hands files of one run to other hosts of that run by HTTP: exactly the files that are named, to who has the token, so
# many at once, at most so many bytes a second in all. It reads files, writes nothing, and starts nothing.
# Arguments: address, port or range of ports (0: any), uploads at once, bytes a second (0: as fast as it goes), seconds
# without a request after which it ends, and then for each file its path, whose folder is named by its sha256.
# The first line of standard input is the token; the end of standard input ends it: the run is over, or its controller
# is gone.
# It prints "serving PORT" once it listens. Exit status 4 where it cannot.
use strict;
use warnings;
use Errno qw(EINTR EAGAIN EINVAL ENOSYS);
use Fcntl qw(F_GETFL F_SETFL O_NONBLOCK O_RDONLY O_NOFOLLOW S_ISREG);
use POSIX ();
use Socket qw(:addrinfo SOCK_STREAM SOL_SOCKET SO_REUSEADDR SOMAXCONN);

my $HEADER_S = 5;           # for a whole request
my $HEADER_BYTES = 4096;
my $WAITING = 8;            # connections that have not asked yet
my $STALLED_S = 20;         # an upload of which nobody takes a byte
my $WINDOW_S = 60;          # in which an upload must move this much: 512 kbit/s
my $WINDOW_BYTES = $WINDOW_S * 64 * 1024;
my $PIECE_BYTES = 1024 * 1024;
my $SENDFILE = 40;          # its number on x86_64; elsewhere what is sent is read and written

my ($address, $ports, $uploads, $rate, $idle_s, @paths) = @ARGV;
my %path = map { m{([0-9a-f]{64})/[^/]+$} ? ($1, $_) : () } @paths;
$| = 1;
$SIG{PIPE} = 'IGNORE';      # who takes a file may go away
my $sendfile = (POSIX::uname())[4] eq 'x86_64';

my $token = '';
while ($token !~ /\n/) {
    my $n = sysread(STDIN, $token, 256, length $token);
    next if !defined $n && $!{EINTR};
    exit 0 if !$n || length $token > 256;
}
$token =~ s/\n.*//s;
exit 4 if length $token < 32;

my $listener = listening();
my %peer;                   # by descriptor: socket, what came of its request, and the file that it gets
my $budget = 0;              # bytes that may be sent now, where there is a rate
my $asked = time;
my $welcomed = 0;           # connections so far
my $uptime;                 # has hundredths of seconds, which perl's own clock has not
if ($rate) { open $uptime, '<', '/proc/uptime' or cannot("/proc/uptime: $!") }
my $refilled = $rate ? uptime_s() : 0;

while (1) {
    my @peers = values %peer;
    my ($in, $out) = ('', '');
    vec($in, fileno(STDIN), 1) = 1;
    vec($in, fileno($listener), 1) = 1;
    for my $one (@peers) {
        if (defined $one->{left} || length $one->{head}) { vec($out, $one->{fd}, 1) = 1 if !$rate || $budget >= 1 }
        else { vec($in, $one->{fd}, 1) = 1 }
    }
    my $pause = $rate && $budget < 1 ? 0.05 : 1;
    my $n = select(my $readable = $in, my $writable = $out, undef, $pause);
    next if $n < 0 && $!{EINTR};
    refill();
    if ($n > 0) {
        exit 0 if vec($readable, fileno(STDIN), 1) && !sysread(STDIN, my $ignored, 4096);
        for my $one (@peers) {
            if (vec($writable, $one->{fd}, 1)) { sent($one) }
            elsif (vec($readable, $one->{fd}, 1)) { heard($one) }
        }
        welcome() if vec($readable, fileno($listener), 1);
    }
    my $now = time;
    @peers = values %peer;
    for my $one (@peers) { gone($one) if late($one, $now) }
    exit 0 if !%peer && $now - $asked >= $idle_s;
}

sub listening {
    my ($error, @found) = getaddrinfo($address, '0', {socktype => SOCK_STREAM, flags => AI_PASSIVE});
    cannot("$address cannot be resolved: $error") if $error;
    my ($first, $last) = $ports =~ /^([0-9]{1,5})(?:-([0-9]{1,5}))?$/ or cannot("no port: $ports");
    my $why = 'no port';
    for my $port ($first .. (defined $last ? $last : $first)) {
        my ($family, $packed) = ($found[0]{family}, $found[0]{addr});
        socket(my $listener, $family, SOCK_STREAM, 0) or cannot("$!");
        setsockopt($listener, SOL_SOCKET, SO_REUSEADDR, pack('i', 1));
        substr($packed, 2, 2) = pack('n', $port);
        if (!bind($listener, $packed)) { $why = "$address port $port: $!"; next }
        listen($listener, SOMAXCONN) or cannot("$!");
        fcntl($listener, F_SETFL, fcntl($listener, F_GETFL, 0) | O_NONBLOCK);
        print 'serving ', unpack('n', substr(getsockname($listener), 2, 2)), "\n";
        return $listener;
    }
    cannot($why);
}
sub cannot { my ($why) = @_; $why =~ tr/\n\r/  /; print 'cannot ', substr($why, 0, 200), "\n"; exit 4 }

sub welcome {
    while (my $from = accept(my $socket, $listener)) {
        fcntl($socket, F_SETFL, fcntl($socket, F_GETFL, 0) | O_NONBLOCK);
        # of IPv6, the first half: one machine has all addresses of such a network
        my $network = length $from == 16 ? substr($from, 4, 4) : substr($from, 8, 8);
        my @waiting = sort { $a->{number} <=> $b->{number} } grep { !defined $_->{left} } values %peer;
        gone(crowding($network, @waiting)) if @waiting >= $WAITING;
        my $fd = fileno $socket;
        my %new = (asked => '', head => '', since => time, moved => time, then => 0, at => 0);
        $peer{$fd} = {%new, socket => $socket, fd => $fd, network => $network, number => $welcomed++};
    }
}
# Of those that wait, the oldest one of whoever has the most, with the new one's: who is silent loses to who comes.
sub crowding {
    my ($network, @waiting) = @_;
    my %many = ($network => 1);
    $many{$_->{network}}++ for @waiting;
    my ($most) = sort { $b <=> $a } map { $many{$_->{network}} } @waiting;
    return (grep { $many{$_->{network}} == $most } @waiting)[0];
}
sub gone { my ($one) = @_; delete $peer{$one->{fd}}; close $one->{file} if $one->{file}; close $one->{socket} }

sub late {
    my ($one, $now) = @_;
    return $now - $one->{since} >= $HEADER_S if !defined $one->{left};
    return 1 if $now - $one->{moved} >= $STALLED_S && (!$rate || $budget >= 1);
    return 0 if $now - $one->{since} < $WINDOW_S;
    my $slow = !$rate && $one->{at} - $one->{then} < $WINDOW_BYTES;
    ($one->{since}, $one->{then}) = ($now, $one->{at});
    return $slow;
}

# A piece of a request. What is no request of ours gets one line and is left.
sub heard {
    my ($one) = @_;
    my $n = sysread($one->{socket}, $one->{asked}, 2048, length $one->{asked});
    return if !defined $n && ($!{EINTR} || $!{EAGAIN});
    return gone($one) if !$n || length $one->{asked} > $HEADER_BYTES;
    return if $one->{asked} !~ /\r\n\r\n/;
    my ($line, @headers) = split /\r\n/, $one->{asked};
    my %header;
    for (@headers) { if (/^([A-Za-z-]{1,40}):[ \t]*(.*?)[ \t]*$/) { $header{lc $1} = exists $header{lc $1} ? '' : $2 } }
    return refused($one, '400 Bad Request') if $line !~ m{^GET /([0-9a-f]{64}) HTTP/1\.[01]$};
    my $path = $path{$1};
    my ($given) = ($header{authorization} || '') =~ /^Bearer ([A-Za-z0-9_-]{1,200})$/;
    return refused($one, '403 Forbidden') if !same(defined $given ? $given : '', $token);
    $asked = time;
    return refused($one, '503 Service Unavailable') if $uploads <= grep { defined $_->{left} } values %peer;
    my $flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;     # a pipe would wait for a writer
    return refused($one, '404 Not Found') if !defined $path || !sysopen(my $file, $path, $flags);
    my $size = S_ISREG((stat $file)[2]) ? -s _ : 0;
    my ($from) = exists $header{range} ? $header{range} =~ /^bytes=([0-9]{1,15})-$/ : (0);
    return refused($one, '416 Range Not Satisfiable') if !defined $from || $from >= $size;
    sysseek($file, $from, 0);
    my $left = $size - $from;
    my $range = exists $header{range} ? "Content-Range: bytes $from-" . ($size - 1) . "/$size\r\n" : '';
    $one->{head} = 'HTTP/1.1 ' . ($range ? '206 Partial Content' : '200 OK')
        . "\r\nContent-Type: application/octet-stream\r\nContent-Length: $left\r\n${range}Connection: close\r\n\r\n";
    @$one{qw(file left since moved)} = ($file, $left, time, time);
    sent($one);
}
sub refused {
    my ($one, $status) = @_;
    syswrite($one->{socket}, "HTTP/1.1 $status\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    gone($one);
}
# Whether two texts are the same, in a time that says nothing of where they differ.
sub same {
    my ($one, $other) = @_;
    return 0 if length $one != length $other;
    my $differ = 0;
    $differ |= ord(substr $one, $_, 1) ^ ord(substr $other, $_, 1) for 0 .. length($one) - 1;
    return !$differ;
}

# Sends what the socket takes of the head or of the file.
sub sent {
    my ($one) = @_;
    my ($head, $n) = (length $one->{head});
    return if $rate && $budget < 1 && !$head;
    my $most = $one->{left} < $PIECE_BYTES ? $one->{left} : $PIECE_BYTES;
    if ($rate) {                # what may be sent now is for all of them
        my $share = 1 + int($budget / (1 + grep { defined $_->{left} } values %peer));
        $most = $share if $share < $most;
    }
    if ($head) { $n = syswrite($one->{socket}, $one->{head}) }
    elsif ($sendfile) {
        $n = syscall($SENDFILE, $one->{fd}, fileno($one->{file}), 0, $most);
        if ($n < 0 && ($!{EINVAL} || $!{ENOSYS})) { $sendfile = 0; return }
        $n = undef if $n < 0;
    }
    else {
        # What was read and not taken is read again.
        my $got = sysread($one->{file}, my $buffer, $most < 65536 ? $most : 65536);
        return gone($one) if !$got;
        $n = syswrite($one->{socket}, $buffer);
        my $untaken = $got - ($n || 0);
        sysseek($one->{file}, -$untaken, 1) if $untaken;
    }
    return if !defined $n && ($!{EINTR} || $!{EAGAIN});
    return gone($one) if !$n;
    $one->{moved} = time;
    if ($head) { substr($one->{head}, 0, $n) = ''; return }
    $one->{left} -= $n;
    $one->{at} += $n;
    $budget -= $n if $rate;
    gone($one) if $one->{left} <= 0;
}

sub refill {
    return if !$rate;
    my $now = uptime_s();
    $budget += $rate * ($now - $refilled);
    $budget = $rate / 10 if $budget > $rate / 10;
    $refilled = $now;
}
sub uptime_s { sysseek($uptime, 0, 0); sysread($uptime, my $line, 40); return 0 + (split ' ', $line)[0] }
